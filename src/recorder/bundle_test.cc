// SPDX-License-Identifier: Apache-2.0
#include "recorder/bundle.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

class BundleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "clew-bundle-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::create_directories(folder_ / "files/usr");
    std::ofstream(folder_ / "files/usr/app") << "app";
    std::ofstream(folder_ / "secret") << "secret";
    snap_.files = folder_ / "files";
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  Snap snap_;
};

TEST_F(BundleTest, AFileOfItIsTakenFromThere) {
  EXPECT_EQ(file_in_bundle(snap_, "/usr/app"), snap_.files + "/usr/app");
  EXPECT_EQ(file_in_bundle(snap_, "/usr/lib/../app"), snap_.files + "/usr/app");
  EXPECT_EQ(file_in_bundle(snap_, "/usr/other"), "/usr/other");
  EXPECT_EQ(file_in_bundle(Snap(), "/usr/app"), "/usr/app");
}

TEST_F(BundleTest, NoPathLeavesIt) {
  for (const char* const path : {"../secret", "/../secret", "usr/../../secret", "/", "..", ""})
    EXPECT_EQ(file_in_bundle(snap_, path), path);
}

TEST_F(BundleTest, HasOneSnap) {
  EXPECT_EQ(snap_in(folder_).error().code, ErrorCode::NotFound);
  std::ofstream(folder_ / "a.snap") << "a";
  EXPECT_EQ(*snap_in(folder_), folder_ / "a.snap");
  EXPECT_FALSE(read_snap(folder_));
  std::ofstream(folder_ / "b.snap") << "b";
  EXPECT_EQ(snap_in(folder_).error().code, ErrorCode::Refused);
  EXPECT_EQ(snap_in(folder_ / "nowhere").error().code, ErrorCode::Io);
}

TEST_F(BundleTest, IsNotMadeWhereSomethingIs) {
  const Snap snap;
  ASSERT_TRUE(write_snap(folder_ / "empty.snap", snap));
  const std::string path = folder_ / "empty.snap";
  EXPECT_FALSE(write_bundle({.snap = path, .folder = folder_}));
  ASSERT_TRUE(write_bundle({.snap = path, .folder = folder_ / "new"}));
  EXPECT_TRUE(read_snap(folder_ / "new"));
}

}  // namespace
}  // namespace clew::recorder
