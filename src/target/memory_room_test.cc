// SPDX-License-Identifier: Apache-2.0
#include "target/memory_room.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace clew::target {
namespace {

constexpr uint64_t kMebi = uint64_t{1} << 20;

// A control group as the kernel shows it.
class Group : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "clew-group-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text << "\n";
  }

  std::string directory_;
};

TEST_F(Group, OfVersion2CountsFilesAsFree) {
  write("memory.max", "67108864");
  write("memory.current", "60000000");
  write("memory.stat", "anon 1\nfile 9\ninactive_file 1000000\nactive_file 2000000\nslab 5");
  const auto room = room_of_group(directory_);
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->limit_bytes, 64 * kMebi);
  EXPECT_EQ(room->left_bytes, 64 * kMebi - 57'000'000);
  EXPECT_EQ(room->group, directory_);
}

TEST_F(Group, OfVersion1CountsThoseOfItsChildrenToo) {
  write("memory.limit_in_bytes", "67108864");
  write("memory.usage_in_bytes", "60000000");
  write("memory.stat", "inactive_file 7\ntotal_inactive_file 1000000\ntotal_active_file 2000000");
  const auto room = room_of_group(directory_);
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->left_bytes, 64 * kMebi - 57'000'000);
}

TEST_F(Group, WithoutALimitSaysNothing) {
  EXPECT_FALSE(room_of_group(directory_).has_value());
  write("memory.max", "max");
  write("memory.current", "60000000");
  EXPECT_FALSE(room_of_group(directory_).has_value());
  write("memory.limit_in_bytes", "9223372036854771712");
  write("memory.usage_in_bytes", "60000000");
  EXPECT_FALSE(room_of_group(directory_).has_value());
}

TEST_F(Group, BeyondItsLimitHasNothingLeft) {
  write("memory.max", "1048576");
  write("memory.current", "1060000");
  const auto room = room_of_group(directory_);
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->left_bytes, 0U);
}

TEST(MemoryRoom, OfThisProcessIsAtMostTheMachines) {
  const MemoryRoom room = memory_room(getpid());
  EXPECT_GT(room.left_bytes, kMebi);
  EXPECT_LE(room.left_bytes, room.limit_bytes);
  EXPECT_LT(room.limit_bytes, uint64_t{1} << 50);
}

}  // namespace
}  // namespace clew::target
