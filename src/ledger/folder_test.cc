// SPDX-License-Identifier: Apache-2.0
#include "ledger/folder.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::ledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LedgerFolders : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/ledger.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  [[nodiscard]] std::string path() const { return top_ + "/state/clew"; }
  [[nodiscard]] std::string file() const { return path() + "/" + kSessionsFile; }
  [[nodiscard]] std::string older() const { return path() + "/" + kOlderFile; }
  Folder open(uint64_t bytes_max = kFileBytesMax) const {
    auto folder = Folder::open(path(), bytes_max);
    EXPECT_TRUE(folder) << folder.error().message;
    return std::move(*folder);
  }
  static std::string content(const std::string& of) {
    std::stringstream text;
    text << std::ifstream(of).rdbuf();
    return text.str();
  }
  static void write(const std::string& to, const std::string& text) { std::ofstream(to) << text; }

  std::string top_;
};

TEST_F(LedgerFolders, LinesStandOneAfterTheOtherInAFileThatOthersCannotRead) {
  const mode_t before = umask(0);
  Folder folder = open();
  ASSERT_TRUE(folder.append("one\n"));
  ASSERT_TRUE(open().append("two\n"));
  (void)umask(before);
  EXPECT_EQ(content(file()), "one\ntwo\n");
  struct stat status {};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & (S_IRWXO | S_IWGRP), 0U);
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & (S_IRWXO | S_IWGRP), 0U);
}

TEST_F(LedgerFolders, AFullFileIsKeptOnceAndThenForgotten) {
  Folder folder = open(10);
  for (const char* line : {"first\n", "second\n", "third\n"})
    ASSERT_TRUE(folder.append(line));
  EXPECT_EQ(content(file()), "third\n");
  EXPECT_EQ(content(older()), "second\n");
  // A line that is longer than all of it has a file of its own.
  ASSERT_TRUE(folder.append("a line too long\n"));
  EXPECT_EQ(content(file()), "a line too long\n");
  EXPECT_EQ(content(older()), "third\n");
}

TEST_F(LedgerFolders, WhatAFullDiskTookOfALineSpoilsNoOther) {
  Folder folder = open();
  ASSERT_TRUE(folder.append("one\n"));
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 7;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto torn = folder.append("second\n");
  const auto none = folder.append("third\n");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  (void)std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(torn);
  EXPECT_THAT(torn.error().message, HasSubstr(file()));
  EXPECT_FALSE(none);
  ASSERT_TRUE(folder.append("fourth\n"));
  EXPECT_EQ(content(file()), "one\nsec\nfourth\n");
}

TEST_F(LedgerFolders, NoLinkIsFollowedAndNoFileOfOthersWritten) {
  Folder folder = open();
  const std::string other = top_ + "/other";
  write(other, "kept");
  std::filesystem::create_symlink(other, file());
  EXPECT_FALSE(folder.append("line\n"));
  std::filesystem::remove(file());
  std::filesystem::create_hard_link(other, file());
  EXPECT_FALSE(folder.append("line\n"));
  std::filesystem::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_FALSE(folder.append("line\n"));
  std::filesystem::remove(file());
  std::filesystem::create_symlink("/dev/null", file());
  EXPECT_FALSE(folder.append("line\n"));
  EXPECT_EQ(content(other), "kept");
}

TEST_F(LedgerFolders, AFolderThatOthersMayWriteIsRefused) {
  (void)open();
  ASSERT_EQ(chmod(path().c_str(), 0777), 0);
  const auto opened = Folder::open(path());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("others may write " + path()));
  ASSERT_EQ(chmod(path().c_str(), 0700), 0);
  std::filesystem::rename(path(), top_ + "/elsewhere");
  std::filesystem::create_symlink(top_ + "/elsewhere", path());
  EXPECT_FALSE(Folder::open(path()));
}

TEST_F(LedgerFolders, AMarkIsFoundWhenItsProcessIsKilledAndOnlyThen) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto mark = open().mark_running("5-child", "line of the child\n");
    (void)!::write(ready[1], mark ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char answer = 'n';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  Folder folder = open();
  EXPECT_THAT(folder.take_killed(), IsEmpty());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_THAT(folder.take_killed(), ElementsAre("line of the child\n"));
  EXPECT_THAT(folder.take_killed(), IsEmpty());
  (void)close(ready[0]);
  (void)close(ready[1]);
}

TEST_F(LedgerFolders, AMarkThatIsTakenAwayLeavesNothing) {
  Folder folder = open();
  {
    auto mark = folder.mark_running("5-x", "line\n");
    ASSERT_TRUE(mark);
    EXPECT_TRUE(std::filesystem::exists(path() + "/running/5-x"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/running"));
  EXPECT_THAT(folder.take_killed(), IsEmpty());
}

}  // namespace
}  // namespace clew::ledger
