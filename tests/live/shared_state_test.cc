// SPDX-License-Identifier: Apache-2.0
// Memory that Clew shares with a program, where the program does not play along: it lies about it,
// locks it, sandboxes itself, or waits for a tracer that does not answer.
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

// Field 22 of /proc/PID/stat.
std::string start_time_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(line.rfind(')') + 2));
  std::string word;
  for (int i = 0; i < 20; ++i)
    words >> word;
  return word;
}

uint64_t locked_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (file >> word) {
    uint64_t kib = 0;
    if (word == "VmLck:" && file >> kib) return kib;
  }
  return 0;
}

class FalseArenas : public testing::TestWithParam<const char*> {};

// A write or a read where the lie leads would end the command with a signal.
TEST_P(FalseArenas, LeadTheTracerNowhere) {
  Child liar({.arguments = {victim_path("false_arena"), GetParam(), std::to_string(getpid()),
                            start_time_of(getpid())}});
  const std::optional<std::string> pid = liar.read_line();
  ASSERT_TRUE(pid.has_value());
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"ps"}, {"detach", *pid}, {"detach", "--force", *pid}}) {
    std::vector<std::string> arguments = {CLEW_COMMAND};
    arguments.insert(arguments.end(), verb.begin(), verb.end());
    Child clew({.arguments = arguments});
    const Child::End end = clew.wait_for_end();
    EXPECT_LT(end.status, 128) << verb.front() << ": " << end.error;
  }
  EXPECT_TRUE(liar.running());
  expect_text_equals_file(liar.pid());
  liar.close_input();
  EXPECT_EQ(liar.wait_for_end().status, 0);
}

INSTANTIATE_TEST_SUITE_P(SharedState, FalseArenas,
                         testing::Values("unsealed", "unsealed_slots", "few_slots", "file_offset",
                                         "extent_size", "patch_size", "patch_address",
                                         "patch_in_data", "layer_size", "layer_site", "window_size",
                                         "stride", "region", "nothing"));

TEST(SharedState, AProgramThatLocksItsMemoryDoesNotLockTheArena) {
  if (geteuid() != 0) GTEST_SKIP() << "locking memory needs root";
  Victim victim("locked");
  victim.run(10);
  const uint64_t before = locked_kib(victim.pid());
  ASSERT_GT(before, 0U);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("locked!locked_work"));
  EXPECT_LT(locked_kib(victim.pid()), before + 1024);
  const uint64_t calls = victim.counts().at("locked_work");
  victim.run(1000);
  EXPECT_LT(locked_kib(victim.pid()), before + 4096);
  EXPECT_EQ(victim.counts().at("locked_work"), calls + 1000);
  EXPECT_EQ(tracer.finish().calls().at("locked_work"), 1000U);
}

TEST(SharedState, TracersAreNotListedAsTraced) {
  Victim victim("sites");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("sites!rip_*"));
  const Child::End end = Child({.arguments = {CLEW_COMMAND, "ps"}}).wait_for_end();
  EXPECT_THAT(end.output, HasSubstr(std::to_string(victim.pid())));
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    std::string first;
    std::istringstream(line) >> first;
    EXPECT_NE(first, std::to_string(tracer.child().pid())) << line;
  }
  EXPECT_EQ(tracer.finish().status, 0);
}

TEST(SharedState, AProgramThatSandboxesItselfLaterIsCountedAndLives) {
  Victim victim("sandbox");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("sandbox!sandbox_work"));
  victim.ask("lock 0");
  victim.run(100);
  EXPECT_EQ(tracer.finish().calls().at("sandbox_work"), 100U);
  EXPECT_EQ(victim.counts().at("sandbox_work"), 100U);
}

TEST(SharedState, ACommandThatSandboxesItselfAtItsStartLives) {
  const Report report = run_clew(
      {"run", entries_of("sandbox!sandbox_work"), "--json", "-c", victim_path("sandbox") + " now"});
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls().at("sandbox_work"), 100U) << report.error;
}

// The tracer stands still for longer than the loader waits.
TEST(SharedState, ModulesAreFollowedAfterATracerThatWasLateOnce) {
  Victim victim("plugins");
  Tracer tracer =
      Tracer::attach(victim.pid(), entries_of("libplugin_a.so!plugin_work"), {"--allow-missing"});
  victim.run(2);
  tracer.child().signal(SIGSTOP);
  victim.run(1);
  tracer.child().signal(SIGCONT);
  // Nobody waits until the tracer has answered once; then all wait.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end)
    victim.run(1);
  const uint64_t truth = victim.counts().at("plugin_work");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const uint64_t counted = report.calls().at("plugin_work");
  EXPECT_LE(counted, truth);
  EXPECT_GE(counted, 2U + 10U) << report.summary;
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("may be missing"));
}

}  // namespace
}  // namespace clew::live
