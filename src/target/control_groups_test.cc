// SPDX-License-Identifier: Apache-2.0
#include "target/control_groups.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace clew::target {
namespace {

namespace fs = std::filesystem;

uint64_t inode_of(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// A tree of folders: what counts is their numbers.
class ControlGroupsTest : public testing::Test {
 protected:
  ControlGroupsTest()
      : root_(fs::temp_directory_path() / ("groups-" + std::to_string(getpid()))),
        web_(root_ / "system.slice" / "web.service") {
    fs::create_directories(web_);
  }
  ~ControlGroupsTest() override { fs::remove_all(root_); }

  fs::path root_;
  fs::path web_;
};

TEST_F(ControlGroupsTest, AGroupIsKnownByItsNumber) {
  ControlGroups groups(root_.string());
  groups.keep();
  EXPECT_EQ(groups.path_of(inode_of(web_)), "/system.slice/web.service");
  EXPECT_EQ(groups.path_of(inode_of(root_)), "/");
  EXPECT_EQ(groups.number_of("/system.slice/web.service"), inode_of(web_));
}

TEST_F(ControlGroupsTest, OneThatIsGoneKeepsItsPath) {
  ControlGroups groups(root_.string());
  groups.keep();
  const uint64_t number = inode_of(web_);
  fs::remove(web_);
  EXPECT_EQ(groups.path_of(number), "/system.slice/web.service");
  EXPECT_EQ(groups.number_of("/system.slice/web.service"), 0U);
}

TEST_F(ControlGroupsTest, ANumberThatIsNoGroupsHasNoPath) {
  ControlGroups groups(root_.string());
  groups.keep();
  EXPECT_EQ(groups.path_of(inode_of(root_.parent_path())), std::nullopt);
}

TEST_F(ControlGroupsTest, WithoutAMountNothingIsKnown) {
  ControlGroups groups("");
  groups.keep();
  EXPECT_EQ(groups.path_of(1), std::nullopt);
  EXPECT_EQ(groups.number_of("/"), 0U);
}

}  // namespace
}  // namespace clew::target
