// SPDX-License-Identifier: Apache-2.0
// What is kept of a file is what was made, and nothing else is taken for it.
#include "copy/sidecar.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "copy/victims_testing.h"

namespace clew::copy {
namespace {

SidecarKey key_of(const Victim& victim) {
  return *sidecar_key(*facts_input(victim.image()));
}

Sidecar made_of(const Victim& victim) {
  auto checked = victim.check(victim.write());
  return {.copy = std::move(*checked),
          .proved_bytes = victim.proof().proved_bytes,
          .refused_bytes = victim.proof().refused_bytes,
          .refused = victim.proof().refused};
}

// Written again, each is the same bytes; and it still is a copy that passes.
TEST(Sidecar, GivesBackWhatWasKept) {
  for (const char* const file : {"switches", "layout", "reasons", "fixed", "/bin/gzip"}) {
    const Victim victim(file);
    const Sidecar made = made_of(victim);
    const std::vector<uint8_t> bytes = encode(key_of(victim), made);
    const auto again = decode(key_of(victim), bytes);
    ASSERT_TRUE(again) << file << ' ' << again.error().message;
    EXPECT_EQ(encode(key_of(victim), *again), bytes);
    EXPECT_TRUE(victim.check(again->copy.copy()));
    EXPECT_EQ(again->proved_bytes, made.proved_bytes);
    EXPECT_EQ(again->refused_bytes, made.refused_bytes);
    EXPECT_EQ(again->refused.size(), made.refused.size());
  }
}

TEST(Sidecar, IsRefusedWithAnyByteChangedAddedOrLost) {
  const Victim victim("switches");
  const SidecarKey key = key_of(victim);
  const std::vector<uint8_t> right = encode(key, made_of(victim));
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::vector<uint8_t> bytes = right;
    const size_t at = random() % bytes.size();
    switch (random() % 3) {
      case 0:
        bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1U << random() % 8);
        break;
      case 1:
        bytes.resize(at);
        break;
      default:
        bytes.insert(bytes.end(), at % 9 + 1, 0);
    }
    EXPECT_FALSE(decode(key, bytes)) << at;
  }
}

TEST(Sidecar, OfAnotherFileOrInputHasAnotherKey) {
  const Victim victim("switches");
  FactsInput input = *facts_input(victim.image());
  const SidecarKey key = *sidecar_key(input);
  EXPECT_NE(key, key_of(Victim("layout")));
  input.resolvers.push_back(1);
  EXPECT_NE(*sidecar_key(input), key);
  EXPECT_FALSE(decode(key_of(Victim("layout")), encode(key, made_of(victim))));
}

class SidecarFolder : public testing::Test {
 protected:
  SidecarFolder() {
    std::string pattern = testing::TempDir() + "sidecars-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~SidecarFolder() override { std::filesystem::remove_all(folder_); }
  // The one file there.
  [[nodiscard]] std::string file() const {
    return std::filesystem::directory_iterator(folder_)->path();
  }

  std::string folder_;
};

TEST_F(SidecarFolder, KeepsThemForTheirOwnerAlone) {
  const Victim victim("layout");
  const Sidecars sidecars(folder_);
  EXPECT_FALSE(sidecars.find(key_of(victim)));
  sidecars.store(key_of(victim), made_of(victim));
  const auto found = sidecars.find(key_of(victim));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->copy.copy().bytes, victim.write().bytes);
  struct stat status {};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(chmod(file().c_str(), 0644), 0);
  EXPECT_FALSE(sidecars.find(key_of(victim)));
}

TEST_F(SidecarFolder, TakesADamagedOneForNone) {
  const Victim victim("layout");
  const Sidecars sidecars(folder_);
  sidecars.store(key_of(victim), made_of(victim));
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - 1);
  EXPECT_FALSE(sidecars.find(key_of(victim)));
  std::filesystem::resize_file(file(), 0);
  EXPECT_FALSE(sidecars.find(key_of(victim)));
}

}  // namespace
}  // namespace clew::copy
