// SPDX-License-Identifier: Apache-2.0
// Compared with what the loader made of the C library in this process.
#include "target/exported_places.h"

#include <array>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace clew::target {
namespace {

TEST(ExportedPlaces, AreWhereTheLoaderHasThem) {
  Dl_info info = {};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "getenv"), &info), 0);
  const auto base = reinterpret_cast<uint64_t>(info.dli_fbase);
  constexpr std::array<std::string_view, 3> kNames = {"getenv", "no_such_thing",
                                                      "program_invocation_short_name"};
  const auto places = read_exported_places(info.dli_fname, kNames);
  ASSERT_TRUE(places);
  ASSERT_EQ(places->size(), kNames.size());
  for (const size_t i : {size_t{0}, size_t{2}}) {  // A function, and data.
    void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    const void* const loaded = dlsym(library, kNames[i].data());
    (void)dlclose(library);
    ASSERT_TRUE((*places)[i]) << kNames[i];
    EXPECT_EQ(*(*places)[i] + base, reinterpret_cast<uint64_t>(loaded)) << kNames[i];
  }
  EXPECT_FALSE((*places)[1]);
}

TEST(ExportedPlaces, OfWhatIsNoElfFileAreAnError) {
  constexpr std::array<std::string_view, 1> kNames = {"getenv"};
  EXPECT_FALSE(read_exported_places("/proc/self/maps", kNames));
}

}  // namespace
}  // namespace clew::target
