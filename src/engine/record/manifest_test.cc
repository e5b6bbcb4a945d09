// SPDX-License-Identifier: Apache-2.0
#include "engine/record/manifest.h"

#include <vector>

#include <gtest/gtest.h>

namespace clew::engine {
namespace {

Manifest some() {
  recorder::SnapModule module;
  module.load_bias = 0x1000;
  module.copy_address = 0x7f00'0000'1000;
  module.code_size = 0x500;
  module.recipe.first_id = 7;
  module.id_count = 3;
  module.build_id = "abcd";
  module.path = "/usr/bin/app";
  return {.answers = 0x7f00'0000'2000, .modules = {module, module}};
}

TEST(Manifest, IsReadAsItWasWritten) {
  std::vector<uint8_t> bytes = manifest_bytes(some());
  bytes.resize(bytes.size() + 1000, 0xee);  // What was there before.
  const auto read = parse_manifest(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->answers, some().answers);
  ASSERT_EQ(read->modules.size(), 2U);
  EXPECT_EQ(read->modules[1].copy_address, some().modules[1].copy_address);
  EXPECT_EQ(read->modules[1].recipe.first_id, 7U);
  EXPECT_EQ(read->modules[1].path, "/usr/bin/app");
}

TEST(Manifest, IsNoneWhenItIsCutOrChanged) {
  const std::vector<uint8_t> bytes = manifest_bytes(some());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_manifest(std::span(bytes).first(size))) << size;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i >= 8 && i < 16) continue;  // Where the answers are is found out by what is there.
    std::vector<uint8_t> changed = bytes;
    changed[i] ^= 0x40;
    EXPECT_FALSE(parse_manifest(changed)) << i;
  }
  EXPECT_FALSE(parse_manifest(std::vector<uint8_t>(1000)));
}

}  // namespace
}  // namespace clew::engine
