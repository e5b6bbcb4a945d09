// SPDX-License-Identifier: Apache-2.0
// Compared with what the loader made of the C library in this process.
#include "target/exported_code.h"

#include <cstring>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace clew::target {
namespace {

std::string c_library(uint64_t& base) {
  Dl_info info = {};
  EXPECT_NE(dladdr(dlsym(RTLD_DEFAULT, "getenv"), &info), 0);
  base = reinterpret_cast<uint64_t>(info.dli_fbase);
  return info.dli_fname;
}

TEST(ExportedCode, IsWhatTheLoaderMaps) {
  uint64_t base = 0;
  const std::string path = c_library(base);
  const auto code = read_exported_code(path, "getenv", 4096);
  ASSERT_TRUE(code && *code);
  const void* const loaded = dlsym(RTLD_DEFAULT, "getenv");
  EXPECT_EQ((*code)->address + base, reinterpret_cast<uint64_t>(loaded));
  ASSERT_GT((*code)->bytes.size(), 16U);
  EXPECT_EQ(std::memcmp((*code)->bytes.data(), loaded, (*code)->bytes.size()), 0);
  const auto start = read_exported_code(path, "getenv", 8);
  ASSERT_TRUE(start && *start);
  EXPECT_EQ((*start)->bytes.size(), 8U);
}

TEST(ExportedCode, OfWhatIsNoFunctionThereIsNone) {
  uint64_t base = 0;
  const std::string path = c_library(base);
  for (const char* name : {"no_such_function", "environ", "memcpy"}) {  // The last is an IFUNC.
    const auto code = read_exported_code(path, name, 4096);
    ASSERT_TRUE(code) << name;
    EXPECT_FALSE(*code) << name;
  }
  const auto text = read_exported_code("/proc/self/maps", "getenv", 4096);
  EXPECT_FALSE(text);
}

}  // namespace
}  // namespace clew::target
