// SPDX-License-Identifier: Apache-2.0
#include "base/run_program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace clew {
namespace {

TEST(RunProgram, GivesOutputAndMessages) {
  const auto run = run_program({"sh", "-c", "cat; echo oops >&2"}, "hello");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_TRUE(run->succeeded);
  EXPECT_EQ(run->output, "hello");
  EXPECT_EQ(run->messages, "oops\n");
}

// More than a pipe has room for, in both directions.
TEST(RunProgram, LargeTextsDoNotBlock) {
  const std::string text(3 << 20, 'x');
  const auto run = run_program({"cat"}, text);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->output.size(), text.size());
}

TEST(RunProgram, SaysHowItEnded) {
  const auto failed = run_program({"sh", "-c", "exit 3"}, "");
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->succeeded);
  const auto killed = run_program({"sh", "-c", "kill -9 $$"}, "");
  ASSERT_TRUE(killed);
  EXPECT_FALSE(killed->succeeded);
}

// As for a user whose PATH has folders of root.
TEST(RunProgram, ANameThatPathHasButMayNotRunIsNotFound) {
  std::string folder = testing::TempDir() + "clew-path-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/clew-no-program";
  std::ofstream(file) << "no program";
  // NOLINTBEGIN(concurrency-mt-unsafe): the test has one thread.
  const std::string before = getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  const auto run = run_program({"clew-no-program"}, "");
  setenv("PATH", file.c_str(), 1);
  const auto in_file = run_program({"clew-no-program"}, "");
  setenv("PATH", before.c_str(), 1);
  // NOLINTEND(concurrency-mt-unsafe)
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::NotFound);
  ASSERT_FALSE(in_file);
  EXPECT_EQ(in_file.error().code, ErrorCode::NotFound);
  EXPECT_EQ(run_program({file}, "").error().code, ErrorCode::Io);
  std::filesystem::remove_all(folder);
}

TEST(RunProgram, AProgramThatIsNotThereIsNotFound) {
  const auto run = run_program({"/no/such/program"}, "");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::NotFound);
  EXPECT_EQ(run.error().message, "No such file or directory");
}

}  // namespace
}  // namespace clew
