// SPDX-License-Identifier: Apache-2.0
#include "recorder/snap_limits.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kNowNs = 1'000'000 * kSecondNs;
constexpr uint64_t kCopy = 0x5555'1000'0000;
constexpr uint64_t kOriginal = 0x5555'0000'0000;
constexpr uint64_t kLibrary = 0x7f00'0000'0000;

// A recorded program, and a library that is not.
Snap crash_at(uint64_t pc, int signal = SIGSEGV) {
  Snap snap;
  snap.reason = {.signal = signal, .code = 1, .thread = 7, .time_ns = kNowNs};
  snap.pid = 7;
  snap.command = {"app"};
  snap.modules.resize(2);
  snap.modules[0].load_bias = kOriginal;
  snap.modules[0].copy_address = kCopy;
  snap.modules[0].code_size = 0x1000;
  snap.modules[0].id_count = 9;
  snap.modules[0].build_id = "aa";
  snap.modules[1].load_bias = kLibrary;
  snap.modules[1].path = "/lib/c.so";
  snap.threads.resize(1);
  snap.threads[0].thread = 7;
  snap.threads[0].registers.rip = pc;
  return snap;
}

class SnapLimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "clew-limits-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  // Written when its reason was.
  void put(const std::string& name, const Snap& snap) const {
    ASSERT_TRUE(write_snap(path(name), snap));
    touch(name, snap.reason.time_ns);
  }
  void touch(const std::string& name, uint64_t time_ns) const {
    timespec times[2] = {};
    for (timespec& time : times)
      time.tv_sec = static_cast<time_t>(time_ns / kSecondNs);
    ASSERT_EQ(utimensat(AT_FDCWD, path(name).c_str(), times, 0), 0);
  }
  [[nodiscard]] SnapFolder with(const SnapLimits& limits) const { return {folder_, limits}; }

  fs::path folder_;
};

TEST(CrashPlace, IsInTheCopyOrTheModule) {
  EXPECT_EQ(*crash_place(crash_at(kCopy + 0x10)), (CrashPlace{SIGSEGV, "aa", 0x10}));
  EXPECT_EQ(*crash_place(crash_at(kOriginal + 0x20)), (CrashPlace{SIGSEGV, "aa", 0x20}));
  EXPECT_EQ(*crash_place(crash_at(kLibrary + 3)), (CrashPlace{SIGSEGV, "/lib/c.so", 3}));
  EXPECT_EQ(*crash_place(crash_at(5)), (CrashPlace{SIGSEGV, "", 5}));
}

TEST(CrashPlace, OfAbortIsWhoCalledIt) {
  Snap snap = crash_at(kLibrary + 3, SIGABRT);
  snap.threads[0].called_from = kCopy + 0x30;
  EXPECT_EQ(*crash_place(snap), (CrashPlace{SIGABRT, "aa", 0x30}));
}

TEST(CrashPlace, IsNotThereWhereNothingCrashed) {
  EXPECT_FALSE(crash_place(crash_at(kCopy, 0)));
  Snap other = crash_at(kCopy);
  other.reason.thread = 8;
  EXPECT_FALSE(crash_place(other));
}

TEST_F(SnapLimitsTest, WithoutLimitsAllSnapsAreWritten) {
  put("app.snap", crash_at(kCopy));
  EXPECT_FALSE(with({}).suppression_of(crash_at(kCopy)));
}

TEST_F(SnapLimitsTest, TheSameCrashIsSuppressedWithinTheInterval) {
  SnapFolder folder = with({.same_crash_max = 2, .interval_ns = 10 * kSecondNs});
  Snap snap = crash_at(kCopy + 4);
  EXPECT_FALSE(folder.suppression_of(snap));
  put("app.snap", snap);
  EXPECT_FALSE(folder.suppression_of(snap));
  snap.reason.time_ns += kSecondNs;
  put("app-7.snap", snap);
  const auto by = folder.suppression_of(snap);
  ASSERT_TRUE(by);
  EXPECT_EQ(by->cause, SuppressedBy::SameCrash);
  EXPECT_EQ(by->like, "app-7.snap");
  EXPECT_FALSE(folder.suppression_of(crash_at(kCopy + 5)));
  EXPECT_FALSE(folder.suppression_of(crash_at(kCopy + 4, SIGBUS)));
  snap.reason.time_ns = kNowNs + 10 * kSecondNs;  // The first one is too old.
  EXPECT_FALSE(folder.suppression_of(snap));
}

// Wherever the process has got to meanwhile, and without any limit.
TEST_F(SnapLimitsTest, TheSameQueryOfTheSameProgramIsSuppressedWithinTheHour) {
  SnapFolder folder = with({});
  Snap snap = crash_at(kCopy + 4);
  snap.reason = {.thread = 7, .time_ns = kNowNs};
  snap.condition = "profile(1hz)";
  EXPECT_FALSE(folder.suppression_of(snap));
  put("app.snap", snap);
  snap.threads[0].registers.rip += 8;
  const auto by = folder.suppression_of(snap);
  ASSERT_TRUE(by);
  EXPECT_EQ(by->cause, SuppressedBy::SameQuery);
  EXPECT_EQ(by->like, "app.snap");
  EXPECT_TRUE(with({.same_crash_max = 1}).suppression_of(snap));
  EXPECT_FALSE(with({.same_crash_max = 2}).suppression_of(snap));
  EXPECT_FALSE(folder.suppression_of(crash_at(kCopy + 4)));
  Snap other = snap;
  other.condition = "profile(2hz)";
  EXPECT_FALSE(folder.suppression_of(other));
  other = snap;
  other.command = {"/bin/other"};
  EXPECT_FALSE(folder.suppression_of(other));
  snap.reason.time_ns += 3600 * kSecondNs;
  EXPECT_FALSE(folder.suppression_of(snap));
}

TEST_F(SnapLimitsTest, ExitsOfOnePlaceAndStatusAreTheSame) {
  SnapFolder folder = with({.same_crash_max = 1});
  Snap snap = crash_at(kCopy + 4);
  snap.reason = {.code = 3, .thread = 7, .trigger = SnapTrigger::Exit, .time_ns = kNowNs};
  put("app.snap", snap);
  ASSERT_TRUE(folder.suppression_of(snap));
  EXPECT_EQ(folder.suppression_of(snap)->cause, SuppressedBy::SameExit);
  snap.reason.code = 4;
  EXPECT_FALSE(folder.suppression_of(snap));
  EXPECT_FALSE(with({}).suppression_of(snap));
}

// Wherever its threads wait, and without any limit.
TEST_F(SnapLimitsTest, HeartbeatsOfOneProgramAreTheSame) {
  SnapFolder folder = with({});
  Snap snap = crash_at(kCopy + 4);
  snap.reason = {.code = 1000, .trigger = SnapTrigger::Heartbeat, .time_ns = kNowNs};
  EXPECT_FALSE(folder.suppression_of(snap));
  put("app.snap", snap);
  snap.threads[0].registers.rip += 8;
  ASSERT_TRUE(folder.suppression_of(snap));
  EXPECT_EQ(folder.suppression_of(snap)->cause, SuppressedBy::SameHeartbeat);
  snap.command = {"/bin/other"};
  EXPECT_FALSE(folder.suppression_of(snap));
}

TEST_F(SnapLimitsTest, AnotherProcessHasItsModulesElsewhere) {
  SnapFolder folder = with({.same_crash_max = 1});
  put("app.snap", crash_at(kCopy + 4));
  Snap snap = crash_at(kCopy + 0x7004);
  snap.modules[0].copy_address += 0x7000;
  EXPECT_TRUE(folder.suppression_of(snap));
}

TEST_F(SnapLimitsTest, WhoTakesASnapAwayMakesRoom) {
  SnapFolder folder = with({.same_crash_max = 1, .files_max = 2});
  put("app.snap", crash_at(kCopy + 4));
  EXPECT_TRUE(folder.suppression_of(crash_at(kCopy + 4)));
  fs::remove(path("app.snap"));
  EXPECT_FALSE(folder.suppression_of(crash_at(kCopy + 4)));
  put("app.snap", crash_at(kCopy + 5));  // The name is not what was read.
  EXPECT_FALSE(folder.suppression_of(crash_at(kCopy + 4)));
  EXPECT_TRUE(folder.suppression_of(crash_at(kCopy + 5)));
}

TEST_F(SnapLimitsTest, FilesAndBytesAreThoseOfTheFolder) {
  put("a.snap", crash_at(kCopy));
  const uint64_t size = fs::file_size(path("a.snap"));
  EXPECT_EQ(with({.files_max = 1}).suppression_of(crash_at(1))->cause, SuppressedBy::Files);
  EXPECT_FALSE(with({.files_max = 2}).suppression_of(crash_at(1)));
  EXPECT_EQ(with({.bytes_max = 2 * size - 1}).suppression_of(crash_at(1))->cause,
            SuppressedBy::Bytes);
  EXPECT_FALSE(with({.bytes_max = 2 * size}).suppression_of(crash_at(1)));
}

TEST_F(SnapLimitsTest, WhatIsNoSnapIsNoCrash) {
  std::ofstream(path("bad.snap")) << "CLEW";
  std::ofstream(path("notes.txt")) << "notes";
  fs::create_directory(path("folder.snap"));
  fs::create_symlink("/etc/passwd", path("link.snap"));
  ASSERT_EQ(mkfifo(path("pipe.snap").c_str(), 0600), 0);
  touch("bad.snap", kNowNs);
  EXPECT_FALSE(with({.same_crash_max = 1, .files_max = 2}).suppression_of(crash_at(kCopy)));
  EXPECT_TRUE(with({.files_max = 1}).suppression_of(crash_at(kCopy)));
}

}  // namespace
}  // namespace clew::recorder
