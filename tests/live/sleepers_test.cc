// SPDX-License-Identifier: Apache-2.0
// Waits with a time limit, of programs whose filters kill for the call by which the kernel goes on
// with such a wait.
#include <cerrno>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

enum Filter : uint8_t { kAllows, kForbidsRestart, kTwoFilters };
constexpr int kSleepMs = 2000;

std::string query() {
  return entries_of("sleepers!sleepers_work");
}

// The number of the call that a thread waits in; -1 when it does not.
long call_of(pid_t pid, uint64_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  long number = -1;
  return file >> number ? number : -1;
}

// One session, with all that stops a process: arming, disarming, leaving.
void trace(Victim& victim, bool as_nobody = false) {
  const Report report = Tracer::attach(victim.pid(), query(), {}, as_nobody).finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_TRUE(victim.child().running());
}

void expect_all_waited(Victim& victim) {
  for (const auto& [kind, right] : victim.ask("wake"))
    EXPECT_EQ(right, 1U) << kind;
}

class SleepersUnder : public testing::TestWithParam<Filter> {};

TEST_P(SleepersUnder, AFilterLiveAndSleepTheirTime) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can suspend a filter";
  Victim victim("sleepers");
  victim.ask(fmt::format("filter {}", static_cast<int>(GetParam())));
  victim.ask(fmt::format("sleep {}", kSleepMs));
  trace(victim);
  trace(victim);
  expect_all_waited(victim);
  EXPECT_EQ(victim.run(100), untraced_result("sleepers", 100));
}

INSTANTIATE_TEST_SUITE_P(Sleepers, SleepersUnder,
                         testing::Values(kAllows, kForbidsRestart, kTwoFilters));

// They go on as in a program without filters: no time is added.
TEST(Sleepers, WhoseFilterAllowsTheRestartAreRestarted) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can suspend a filter";
  Victim victim("sleepers");
  victim.ask(fmt::format("filter {}", static_cast<int>(kAllows)));
  const Numbers tids = victim.ask(fmt::format("sleep {}", kSleepMs));
  trace(victim);
  for (const char* const kind : {"nanosleep", "clock_nanosleep", "poll", "futex"})
    EXPECT_EQ(call_of(victim.pid(), tids.at(kind)), SYS_restart_syscall) << kind;
  expect_all_waited(victim);
}

// What such a filter says, only root may read.
TEST(Sleepers, WithAFilterOfTheirOwnLiveUnderEveryUser) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  for (const bool as_nobody : {false, true}) {
    const ChildOptions options = {
        .arguments = {victim_path("sleepers")}, .folder = "/", .as_nobody = as_nobody};
    Victim victim(options, Victim::Place::Started);
    victim.ask(fmt::format("filter_threads {}", static_cast<int>(kForbidsRestart)));
    victim.ask(fmt::format("sleep {}", kSleepMs));
    trace(victim, as_nobody);
    expect_all_waited(victim);
  }
}

TEST(Sleepers, InACallThatAFilterForbidsMeanwhileSeeAnInterruption) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can suspend a filter";
  Victim victim("sleepers");
  victim.ask("forbid_pause");
  trace(victim);
  EXPECT_EQ(victim.ask("unpause").at("errno"), uint64_t{EINTR});
}

// The newest thread is the first at hand.
TEST(Sleepers, WithAFilterOfTheirOwnMakeNoCallsForUs) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root to become somebody else";
  for (const bool as_nobody : {false, true}) {
    const ChildOptions options = {
        .arguments = {victim_path("sleepers")}, .folder = "/", .as_nobody = as_nobody};
    Victim victim(options, Victim::Place::Started);
    victim.ask("cell");
    trace(victim, as_nobody);
    EXPECT_EQ(victim.run(100), untraced_result("sleepers", 100));
  }
}

}  // namespace
}  // namespace clew::live
