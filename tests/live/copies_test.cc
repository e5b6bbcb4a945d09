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
const std::vector<std::string> kByJumps = {"--allow-late-uprobe-danger"};

bool ran_on_copies(const Report& report) {
  return report.error.find("functions run on copies)") != std::string::npos;
}

// As trace_rounds(), but for copies that functions may return to, and stay until they have.
Traced trace_on_copies(Victim& victim, const std::string& name, uint64_t rounds,
                       const std::string& query, const std::vector<std::string>& options) {
  Traced traced;
  const uint64_t expected = untraced_result(name, rounds);
  EXPECT_EQ(victim.run(rounds), expected);
  Tracer tracer = Tracer::attach(victim.pid(), query, options);
  const Numbers before = victim.counts();
  EXPECT_EQ(victim.run(rounds), expected);
  traced.truth = difference(before, victim.counts());
  traced.report = tracer.finish();
  traced.counted = traced.report.calls();
  EXPECT_EQ(traced.report.status, 0) << traced.report.error;
  EXPECT_EQ(traced.report.lost(), 0U) << traced.report.summary;
  EXPECT_TRUE(traced.report.summary.at("lost").empty()) << traced.report.summary;
  EXPECT_EQ(victim.run(rounds), expected);
  return traced;
}

Traced trace_all_on_copies(Victim& victim, const std::string& name, uint64_t rounds) {
  Traced traced = trace_on_copies(victim, name, rounds, entries_of(name + "!*"), kOnCopies);
  EXPECT_TRUE(ran_on_copies(traced.report)) << traced.report.error;
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

// Calls are known from the victim itself. Signals come all the time in `storms`, in threads that
// are made meanwhile; functions of `sites` loop, leave by jumps, and ask for where they were called
// from.
TEST(Copies, CountWhatJumpsCountAndTheVictimKnows) {
  for (const std::string name : {"sites", "tails", "storms"}) {
    SCOPED_TRACE(name);
    const uint64_t rounds = name == "storms" ? 2 : 300;
    Victim victim(name);
    const Traced jumped = trace_rounds(victim, name, entries_of(name + "!*"), rounds, kByJumps);
    const Traced copied = trace_all_on_copies(victim, name, rounds);
    expect_text_equals_file(victim.pid());
    expect_counts(copied.counted, copied.truth);
    expect_counts(jumped.counted, jumped.truth);
    for (const auto& [function, calls] : copied.truth)
      EXPECT_EQ(copied.counted.contains(function), jumped.counted.contains(function)) << function;
  }
}

// Exits are rets in the middle, tail jumps, and rets that several jumps lead to.
TEST(Copies, CountExitsThatJumpsCount) {
  for (const std::string name : {"returns", "tails", "sites"}) {
    SCOPED_TRACE(name);
    constexpr uint64_t kRounds = 200;
    const std::string query = entries_and_returns_of(name + "!*");
    Victim victim(name);
    const Traced jumped = trace_rounds(victim, name, query, kRounds, kByJumps);
    const Traced copied = trace_on_copies(victim, name, kRounds, query, kOnCopies);
    EXPECT_TRUE(ran_on_copies(copied.report)) << copied.report.error;
    EXPECT_EQ(copied.counted, jumped.counted);
    expect_text_equals_file(victim.pid());
  }
}

// Libraries that come later have jumps, and calls lead from copies to them.
TEST(Copies, CallLibrariesThatAreLoadedAndClosed) {
  Victim victim("plugins");
  std::vector<std::string> options = kOnCopies;
  options.emplace_back("--allow-missing");
  const Traced traced = trace_on_copies(
      victim, "plugins", 100,
      count_by_function("entry(\"plugins!*\"), entry(\"libplugin_a.so!plugin_*\")"), options);
  EXPECT_TRUE(ran_on_copies(traced.report)) << traced.report.error;
  EXPECT_EQ(traced.counted.at("plugin_work"), traced.truth.at("plugin_work"));
  EXPECT_EQ(traced.counted.at("call_plugin"), 200U);
  expect_text_equals_file(victim.pid());
}

// A child comes back from fork() in a copy, with its parent's slot.
TEST(Copies, CountCallsExactlyAndForkedChildrenNot) {
  Victim victim("forks");
  expect_exact(trace_all_on_copies(victim, "forks", 1), "entry");
  expect_text_equals_file(victim.pid());
}

// Unwinders are answered also when the session is over: one jump stays in the C library, and the
// next session answers there for its copies, too.
TEST(Copies, HaveExceptionsThatGoThroughThem) {
  Victim victim("exceptions");
  const uint64_t expected = untraced_result("exceptions", 100);
  for (unsigned session = 0; session < 3; ++session) {
    Tracer tracer = Tracer::attach(victim.pid(), entries_of("exceptions!*"), kOnCopies);
    const Numbers before = victim.counts();
    EXPECT_EQ(victim.run(100), expected);
    const Numbers truth = difference(before, victim.counts());
    const Report report = tracer.finish();
    EXPECT_TRUE(ran_on_copies(report)) << report.error;
    expect_counts(report.calls(), truth);
    EXPECT_EQ(victim.run(100), expected);
  }
}

TEST(Copies, HaveExceptionsBehindATracerThatWasKilled) {
  Victim victim("exceptions");
  const uint64_t expected = untraced_result("exceptions", 100);
  Tracer killed = Tracer::attach(victim.pid(), entries_of("exceptions!*"), kOnCopies);
  EXPECT_EQ(victim.run(100), expected);
  killed.child().signal(SIGKILL);
  killed.child().wait_for_end();
  EXPECT_EQ(victim.run(100), expected);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("exceptions!*"), kOnCopies);
  EXPECT_EQ(victim.run(100), expected);
  const Report report = tracer.finish();
  EXPECT_TRUE(ran_on_copies(report)) << report.error;
  EXPECT_EQ(victim.run(100), expected);
}

TEST(Copies, HaveCoroutinesThatLeaveThemAndComeBack) {
  for (const std::string name : {"coroutines", "contexts"}) {
    Victim victim(name);
    const Traced traced = trace_all_on_copies(victim, name, 100);
    expect_counts(traced.counted, traced.truth);
  }
}

// What a session has left, since somebody may return there, is told, and no obstacle for the next.
TEST(Copies, AreFollowedByOtherSessions) {
  Victim victim("contexts");
  const std::vector<std::vector<std::string>> all = {kOnCopies, kOnCopies, kByJumps};
  for (const std::vector<std::string>& options : all) {
    const Traced traced =
        trace_on_copies(victim, "contexts", 50, entries_of("contexts!*"), options);
    EXPECT_EQ(ran_on_copies(traced.report), options == kOnCopies) << traced.report.error;
    if (options == kOnCopies) {
      EXPECT_THAT(traced.report.error, HasSubstr("KiB of code stay"));
    }
    expect_counts(traced.counted, traced.truth);
    expect_text_equals_file(victim.pid());
  }
}

// A thread that was made meanwhile loops in a copy for as long as the storm lasts.
TEST(Copies, AreNotWaitedForWhileAThreadIsInThem) {
  Victim victim("storms");
  const uint64_t expected = untraced_result("storms", 1);
  EXPECT_EQ(victim.run(1), expected);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("storms!*"), kOnCopies);
  victim.ask("begin");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_TRUE(ran_on_copies(report)) << report.error;
  EXPECT_THAT(report.error, HasSubstr("KiB of code stay"));
  expect_text_equals_file(victim.pid());
  victim.ask("calm");
  EXPECT_EQ(victim.run(1), expected);
  EXPECT_EQ(clew({"detach", std::to_string(victim.pid())}).status, 0);
  EXPECT_EQ(victim.run(1), expected);
}

TEST(Copies, AreLeftAfterATracerThatWasKilled) {
  Victim victim("forks");
  const uint64_t expected = untraced_result("forks", 1);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("forks!*"), kOnCopies);
  EXPECT_EQ(victim.run(1), expected);
  tracer.child().signal(SIGKILL);
  tracer.child().wait_for_end();
  EXPECT_EQ(victim.run(1), expected);
  EXPECT_EQ(clew({"detach", std::to_string(victim.pid())}).status, 0);
  EXPECT_EQ(victim.run(1), expected);
  expect_text_equals_file(victim.pid());
  expect_exact(trace_all_on_copies(victim, "forks", 1), "entry");
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
