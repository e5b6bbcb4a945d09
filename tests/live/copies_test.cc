// SPDX-License-Identifier: Apache-2.0
// Queries whose functions run on copies with the probes in them (--copies): the same counts, and
// nothing of them left.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/child.h"
#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kOnCopies = {"--copies", "--allow-late-uprobe-danger"};

Traced trace_on_copies(Victim& victim, const std::string& name, uint64_t rounds) {
  Traced traced = trace_rounds(victim, name, entries_of(name + "!*"), rounds, kOnCopies);
  EXPECT_THAT(traced.report.error, HasSubstr("functions run on copies"));
  EXPECT_TRUE(traced.report.summary.at("lost").empty()) << traced.report.summary;
  return traced;
}

// All that the program counts of its own functions, but for what its libraries count.
void expect_counts(const Numbers& counted, const Numbers& truth) {
  ASSERT_FALSE(counted.empty());
  for (const auto& [function, calls] : counted) {
    const auto found = truth.find(function);
    if (found == truth.end()) continue;
    EXPECT_EQ(calls, found->second) << function;
  }
}

// A child comes back from fork() in a copy, with its parent's slot.
TEST(Copies, CountCallsExactlyAndForkedChildrenNot) {
  Victim victim("forks");
  const ProcessState before = ProcessState::of(victim.pid());
  expect_exact(trace_on_copies(victim, "forks", 2), "entry");
  expect_no_residue(before, victim.pid());
}

// While a function has not returned, unwinders are answered: one jump stays in the C library.
TEST(Copies, HaveExceptionsThatGoThroughThem) {
  Victim victim("exceptions");
  const uint64_t expected = untraced_result("exceptions", 100);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("exceptions!*"), kOnCopies);
  const Numbers before = victim.counts();
  EXPECT_EQ(victim.run(100), expected);
  const Numbers truth = difference(before, victim.counts());
  const Report report = tracer.finish();
  EXPECT_THAT(report.error, HasSubstr("functions run on copies"));
  expect_counts(report.calls(), truth);
  EXPECT_EQ(victim.run(100), expected);
}

TEST(Copies, HaveCoroutinesThatLeaveThemAndComeBack) {
  for (const std::string name : {"coroutines", "contexts"}) {
    Victim victim(name);
    const Traced traced = trace_on_copies(victim, name, 100);
    expect_counts(traced.counted, traced.truth);
  }
}

// What a session has left since somebody may return there is no obstacle for the next one.
TEST(Copies, AreFollowedByOtherSessions) {
  Victim victim("contexts");
  const std::vector<std::vector<std::string>> all = {kOnCopies, kOnCopies, {}, kOnCopies};
  for (const std::vector<std::string>& options : all) {
    const Traced traced = trace_rounds(victim, "contexts", entries_of("contexts!*"), 50, options);
    for (const auto& [function, calls] : traced.truth)
      EXPECT_EQ(traced.counted.at(function), calls) << function;
  }
}

TEST(Copies, AreLeftByTheNextOneAfterATracerThatWasKilled) {
  Victim victim("forks");
  const uint64_t expected = untraced_result("forks", 2);
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("forks!*"), kOnCopies);
  EXPECT_EQ(victim.run(2), expected);
  tracer.child().signal(SIGKILL);
  tracer.child().wait_for_end();
  EXPECT_EQ(victim.run(2), expected);
  Child detach({.arguments = {CLEW_COMMAND, "detach", std::to_string(victim.pid())}});
  EXPECT_EQ(detach.wait_for_end().status, 0);
  EXPECT_EQ(victim.run(2), expected);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Copies, AreOfOneSessionAlone) {
  Victim victim("contexts");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("contexts!*"), kOnCopies);
  const std::vector<std::string> other = {
      "run", entries_of("contexts!*"),    "--json", "--for", "10ms",
      "-p",  std::to_string(victim.pid())};
  const Report refused = run_clew(other);
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.error, HasSubstr("[copies]"));
  EXPECT_EQ(victim.run(50), untraced_result("contexts", 50));
  EXPECT_EQ(tracer.finish().status, 0);
  EXPECT_EQ(run_clew(other).status, 0);
}

}  // namespace
}  // namespace clew::live
