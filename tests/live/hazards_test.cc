// SPDX-License-Identifier: Apache-2.0
// What stopping, changing and leaving a process could break in it, one case each.
#include <csignal>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

TEST(Hazards, ReceivingWithATimeOutDoesNotEndByAStop) {
  Victim victim("hazards");
  victim.ask("receive");
  const Report report = Tracer::attach(victim.pid(), entries_of("hazards!work")).finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(victim.ask("wake").at("failed"), 0U);
}

TEST(Hazards, VforkChildrenAreNotTakenForProcessesWithTheirOwnMemory) {
  Victim victim("hazards");
  victim.ask("spin");
  // The children's SIGCHLD also arrives while threads are led out of a probe.
  for (int i = 0; i < 20; ++i) {
    const Report report = Tracer::attach(victim.pid(), entries_of("hazards!work")).finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
    ASSERT_TRUE(victim.child().running());
  }
  victim.ask("calm");
  expect_text_equals_file(victim.pid());
}

// A thread that waits for its vfork child cannot be stopped: the others would stand still until it
// wakes.
TEST(Hazards, AThreadThatSleepsInTheKernelIsAReasonToStopNothing) {
  Victim victim("hazards");
  victim.tell("vfork_that_waits");
  const std::string status = "/proc/" + std::to_string(victim.pid()) + "/status";
  const auto is_asleep = [&] {
    std::ifstream file(status);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.find("State:\tD") != std::string::npos;
  };
  while (!is_asleep()) {
  }
  const std::string pid = std::to_string(victim.pid());
  const Report report = run_clew({"run", entries_of("hazards!work"), "-p", pid});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, testing::HasSubstr("thread " + pid + " of process " + pid +
                                               " sleeps in the kernel and cannot be stopped"));
  EXPECT_TRUE(is_asleep());
  victim.tell("");
  victim.answer();
  const Report again = Tracer::attach(victim.pid(), entries_of("hazards!work")).finish();
  EXPECT_EQ(again.status, 0) << again.error;
  expect_text_equals_file(victim.pid());
}

// It is not counted, which is said, and the process that it shares with is, exactly.
TEST(Hazards, AProcessOnTheSameMemoryIsLeftAlone) {
  Victim victim("sharer");
  const uint64_t expected = untraced_result("sharer", 1000);
  const auto sharer = victim.ask("share").at("sharer");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("sharer!shared_work"));
  EXPECT_EQ(victim.run(1000), expected);
  victim.ask("turn 1000");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls().at("shared_work"), 1000U) << report.summary;
  EXPECT_GE(report.summary.at("missed").value("no_slot", uint64_t{0}), 900U) << report.summary;
  EXPECT_THAT(report.summary.at("lost").dump(), testing::HasSubstr(std::to_string(sharer)));
  expect_text_equals_file(victim.pid());
  victim.ask("turn 1000");
  // A second session finds it as the first did.
  EXPECT_EQ(Tracer::attach(victim.pid(), entries_of("sharer!shared_work")).finish().status, 0);
  victim.ask("turn 1000");
  EXPECT_EQ(victim.ask("unshare").at("status"), 0U);
  EXPECT_EQ(victim.run(1000), expected);
}

// The kernel's thread of the ring is one of the process's, and executes nothing of it: it is
// neither stopped nor waited for, and works on.
TEST(Hazards, ARingThatTheKernelPollsWorksOnWhileItsProcessIsTraced) {
  Victim victim("uring");
  if (victim.ask("begin").at("poller") == 0)
    GTEST_SKIP() << "NOT TESTED: the kernel makes no io_uring with a thread";
  const Traced traced = trace_rounds(
      victim, "uring", count_by_function(R"(entry("uring!ring_*"), return("uring!ring_*"))"), 30);
  for (const auto& [function, calls] : traced.truth)
    EXPECT_EQ(traced.counted.at(function), 2 * calls) << function;
  for (int i = 0; i < 10; ++i) {
    victim.tell("run 10");
    EXPECT_EQ(Tracer::attach(victim.pid(), entries_of("uring!*")).finish().status, 0);
    EXPECT_EQ(victim.answer().at("errors"), 0U);
  }
  expect_text_equals_file(victim.pid());
}

TEST(Hazards, ARingThatIsMadeWhileItsProcessIsTracedGetsItsThread) {
  Victim victim("uring");
  const uint64_t expected = untraced_result("uring", 30);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("uring!ring_*"));
  if (victim.ask("begin").at("poller") == 0)
    GTEST_SKIP() << "NOT TESTED: the kernel makes no io_uring with a thread";
  EXPECT_EQ(victim.run(30), expected);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_EQ(report.calls(), victim.counts());
  EXPECT_EQ(victim.run(30), expected);
  expect_text_equals_file(victim.pid());
}

// The words above the return address of the first function on a stack may not be there.
TEST(Hazards, ArgumentsBehindTheEndOfAStackAreUnreadable) {
  Victim victim("hazards");
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in entry("hazards!first_on_stack")
                                                  select calls = count(), sum = sum(e.arg6))");
  victim.ask("small_stacks 20");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_TRUE(victim.child().running());
  EXPECT_EQ(victim.counts().at("first_on_stack"), 20U);
  EXPECT_EQ(report.summary.at("missed").value("unreadable", uint64_t{0}), 20U) << report.summary;
}

// Killed at growing moments of its start, told by our own work as a clock.
TEST(Hazards, ACommandDoesNotStayStoppedWhenItsTracerIsKilled) {
  for (int rounds = 0; rounds < 12; ++rounds) {
    Child tracer({.arguments = {CLEW_COMMAND, "run", entries_of("hazards!work"), "-c",
                                victim_path("hazards")}});
    Victim clock("sites");
    for (int i = 0; i < rounds; ++i)
      clock.run(20'000);
    std::ifstream file("/proc/" + std::to_string(tracer.pid()) + "/task/" +
                       std::to_string(tracer.pid()) + "/children");
    pid_t command = 0;
    file >> command;
    tracer.signal(SIGKILL);
    // Its outputs end when the command has ended, too: at the end of its input.
    tracer.close_input();
    tracer.wait_for_end();
    const auto state = [&] {
      std::ifstream stat("/proc/" + std::to_string(command) + "/stat");
      std::string line;
      std::getline(stat, line);
      const size_t end = line.rfind(')');
      return end == std::string::npos ? 'X' : line[end + 2];
    };
    if (command != 0) {
      EXPECT_NE(state(), 'T') << rounds;
    }
  }
}

}  // namespace
}  // namespace clew::live
