// SPDX-License-Identifier: Apache-2.0
// Every way to lose a hit, made to happen: what was counted and what is named as lost must add up
// to the victim's own counters. And the ends of a target that are no exit.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

constexpr uint64_t kLossRounds = 1000;

uint64_t missed(const Report& report, const std::string& cause) {
  return report.summary.at("missed").value(cause, uint64_t{0});
}

uint64_t dropped(const Report& report, const std::string& cause) {
  return report.summary.at("dropped").value(cause, uint64_t{0});
}

uint64_t calls(const Report& report, const std::string& function) {
  const Numbers all = report.calls();
  const auto found = all.find(function);
  return found == all.end() ? 0 : found->second;
}

// A count is one instruction: nothing can come between.
TEST(Losses, ACountMissesNothingInASignalHandlerInsideAProbe) {
  Victim victim("losing");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("losing!in_*"));
  victim.ask("signals 10000");
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls(report, "in_loop"), truth.at("in_loop"));
  EXPECT_EQ(calls(report, "in_handler"), truth.at("in_handler"));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST(Losses, AHitOfASignalHandlerInsideAProbeIsMissedAndCountedAsThat) {
  Victim victim("losing");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from e in entry(\"losing!in_*\") group by e.function, e.arg0 % 8 "
                     "select new { name = e.function, rest = e.arg0 % 8, calls = count() }");
  victim.ask("signals 10000");
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_GT(missed(report, "reentry"), 0U) << "of " << truth.at("in_handler") << " signals";
  EXPECT_EQ(calls(report, "in_loop"), truth.at("in_loop"));
  EXPECT_EQ(calls(report, "in_handler") + missed(report, "reentry"), truth.at("in_handler"));
  EXPECT_EQ(report.lost(), missed(report, "reentry")) << report.summary;
  expect_text_equals_file(victim.pid());
}

TEST(Losses, AJumpOutOfAProbeDoesNotMuteItsThread) {
  Victim victim("losing");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from e in entry(\"losing!*\") group by e.function, e.arg0 % 8 "
                     "select new { name = e.function, rest = e.arg0 % 8, calls = count() }");
  victim.ask("jumps 10000");
  const uint64_t before = victim.counts().at("in_loop");
  victim.run(kLossRounds);
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls(report, "in_loop"), truth.at("in_loop") - before) << report.summary;
  // A jump may come between the probe and the victim's own count, and inside the probe.
  const uint64_t jumps = truth.at("jumps");
  EXPECT_GT(missed(report, "abandoned"), 0U);
  EXPECT_LE(missed(report, "abandoned"), jumps);
  EXPECT_LE(calls(report, "jumped_from"), truth.at("jumped_from") + jumps);
  EXPECT_GE(calls(report, "jumped_from") + jumps, truth.at("jumped_from"));
  expect_text_equals_file(victim.pid());
}

TEST(Losses, ARecursionDeeperThanTheRecordsIsCountedAsFarAsItGoes) {
  Victim victim("losing");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from r in return(\"losing!nested\") where r.elapsed > 0ns group by r.function "
      "select new { name = r.function, calls = count() }");
  victim.ask("recurse 20000");
  const uint64_t truth = victim.counts().at("nested");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_GT(missed(report, "records_full"), 0U);
  EXPECT_GT(calls(report, "nested"), 0U);
  // Each record that there was no room for is an exit that finds none.
  EXPECT_EQ(missed(report, "unpaired"), missed(report, "records_full")) << report.summary;
  EXPECT_EQ(calls(report, "nested") + missed(report, "unpaired"), truth) << report.summary;
}

TEST(Losses, ThreadsBeyondTheSlotsAreMissedAndCountedAsThat) {
  Victim victim("losing");
  constexpr uint64_t kThreads = 4200;  // abi::kSlotsMax is 4096.
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("losing!in_thread"));
  const Numbers answer = victim.ask("threads " + std::to_string(kThreads));
  ASSERT_EQ(answer.at("started"), kThreads);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_GT(missed(report, "no_slot"), 0U);
  EXPECT_EQ(calls(report, "in_thread") + missed(report, "no_slot"), kThreads) << report.summary;
}

TEST(Losses, SlotsOfDeadThreadsAreUsedAgain) {
  Victim victim("losing");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("losing!in_thread"));
  for (int i = 0; i < 3; ++i) {
    victim.ask("threads 200");
    victim.run(kLossRounds);
  }
  const Report report = tracer.finish();
  EXPECT_EQ(calls(report, "in_thread"), 600U);
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST(Losses, EventsThatTheRingHasNoRoomForAreDroppedAndCounted) {
  Victim victim("losing");
  constexpr uint64_t kCalls = 400'000;
  Tracer tracer = Tracer::attach(
      victim.pid(), "from e in entry(\"losing!burst_call\") select e.time, e.arg0, e.tid");
  victim.ask("burst " + std::to_string(kCalls));
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.size() + dropped(report, "ring_full"), kCalls) << report.summary;
  EXPECT_EQ(report.lost(), dropped(report, "ring_full")) << report.summary;
  // What did come through is in order and whole.
  uint64_t next = 0;
  for (const nlohmann::json& row : report.rows) {
    const auto argument = row.at("arg0").get<uint64_t>();
    ASSERT_GE(argument, next);
    next = argument + 1;
  }
}

TEST(Losses, APointerToNothingIsCountedAndTheTargetIsUnharmed) {
  Victim victim("losing");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in entry(\"losing!pointed\") group by str(e.arg0) "
                                 "select new { name = str(e.arg0), calls = count() }");
  victim.ask("pointers 1000");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls(report, "text"), 500U) << report.summary;
  EXPECT_EQ(missed(report, "unreadable"), 500U) << report.summary;
}

TEST(Losses, AProcessThatMayMapNoMoreMemoryIsRefusedAndGoesOn) {
  Victim victim("losing");
  victim.ask("limit_memory 1");
  const ProcessState before = ProcessState::of(victim.pid());
  const uint64_t expected = untraced_result("losing", kLossRounds);
  const Report report =
      run_clew({"run", entries_of("losing!in_loop"), "-p", std::to_string(victim.pid())});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("error:"));
  EXPECT_EQ(victim.run(kLossRounds), expected);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Losses, WhatWasCountedSurvivesAnExec) {
  Victim victim("losing");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("losing!in_loop"));
  const uint64_t expected = victim.run(kLossRounds);
  victim.ask("exec");
  EXPECT_EQ(victim.child().read_line(), "ready");  // Of the new program.
  EXPECT_EQ(victim.run(kLossRounds), expected);
  const Report report = tracer.wait();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls(report, "in_loop"), kLossRounds);
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("another program"));
  expect_text_equals_file(victim.pid());
}

TEST(Losses, WhatWasCountedSurvivesACrash) {
  Victim victim("losing");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("losing!in_loop"));
  victim.run(kLossRounds);
  victim.tell("crash");
  EXPECT_EQ(victim.child().wait_for_end().status, 128 + SIGSEGV);
  const Report report = tracer.wait();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls(report, "in_loop"), kLossRounds);
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("was killed by SIGSEGV"));
}

TEST(Losses, AProgramOf32BitsIsRefusedWithThatReason) {
  ASSERT_EQ(access(victim_path("old_i386").c_str(), X_OK), 0);
  Child child({.arguments = {victim_path("old_i386")}});
  if (child.read_line() != "ready") GTEST_SKIP() << "this kernel runs no 32-bit programs";
  const Report report =
      run_clew({"run", entries_of("old_i386!work"), "-p", std::to_string(child.pid())});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("32-bit"));
  const std::string pid = std::to_string(child.pid());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "-p", pid},
        {"list", "--sites", "--name", "old_i386"},
        {"dtrace", "-p", pid, "-n", "pid$target::work:entry"},
        {"run", entries_of("old_i386!work"), "-c", victim_path("old_i386")},
        {"dtrace", "-c", victim_path("old_i386"), "-n", "pid$target::work:entry"}}) {
    const Report refused = run_clew(words);
    EXPECT_EQ(refused.status, 1) << words.front();
    EXPECT_THAT(refused.error, HasSubstr(" is a 32-bit program; Clew traces 64-bit ones [32-bit]"));
  }
  child.close_input();
  EXPECT_EQ(child.wait_for_end().status, 0);
}

TEST(Losses, MoreThanTenThousandSitesAreAskedFor) {
  Child python({.arguments = {"/usr/bin/python3", "-c",
                              "import sys; print('ready', flush=True); sys.stdin.read()"}});
  ASSERT_EQ(python.read_line(), "ready");  // Before that it may be between two programs.
  const std::string pid = std::to_string(python.pid());
  const Report report = run_clew({"run", entries_of("*!*"), "-p", pid});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("--yes"));
  expect_text_equals_file(python.pid());
  python.close_input();
  EXPECT_EQ(python.wait_for_end().status, 0);
}

}  // namespace
}  // namespace clew::live
