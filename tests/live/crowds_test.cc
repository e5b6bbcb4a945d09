// SPDX-License-Identifier: Apache-2.0
// Much of everything at once: threads, signals, children, processes of one program.
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

void expect_all_counted_twice(const Traced& traced) {
  for (const auto& [function, calls] : traced.truth) {
    EXPECT_GT(calls, 0U) << function;
    const auto counted = traced.counted.find(function);
    EXPECT_EQ(counted == traced.counted.end() ? 0 : counted->second, 2 * calls)
        << function << ": " << traced.report.summary;
  }
}

// Comes and goes while the victim does not rest.
void attach_again_and_again(Victim& victim, const std::string& query, int times,
                            const std::vector<std::string>& more = {}) {
  for (int i = 0; i < times; ++i) {
    const Report report = Tracer::attach(victim.pid(), query, more).finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
    ASSERT_TRUE(victim.child().running());
  }
}

TEST(Crowds, OfAThousandThreadsAreCountedExactly) {
  Victim victim("crowd");
  const Traced traced =
      trace_rounds(victim, "crowd", entries_and_returns_of("crowd!crowd_work"), 100);
  EXPECT_EQ(traced.truth.at("crowd_work"), 100'000U);
  expect_all_counted_twice(traced);
}

TEST(Crowds, OfAThousandThreadsThatTakeTurnsAreUnharmed) {
  Victim victim("crowd");
  const uint64_t expected = untraced_result("crowd", 100);
  EXPECT_EQ(victim.run(100), expected);
  victim.ask("rush 0");
  attach_again_and_again(victim, entries_and_returns_of("crowd!crowd_work"), 5);
  expect_text_equals_file(victim.pid());
  victim.ask("halt 0");
  EXPECT_EQ(victim.run(100), expected);
}

TEST(Crowds, OfSignalsAndChildrenAreCountedExactly) {
  Victim victim("storms");
  const Traced traced =
      trace_rounds(victim, "storms", entries_and_returns_of("storms!storm_*"), 15);
  expect_all_counted_twice(traced);
}

TEST(Crowds, OfSignalsAndChildrenAreUnharmedByComingAndGoing) {
  Victim victim("storms");
  victim.ask("begin 0");
  attach_again_and_again(victim, entries_and_returns_of("storms!storm_*"), 10);
  victim.ask("calm 0");
  expect_text_equals_file(victim.pid());
  EXPECT_EQ(victim.run(3), untraced_result("storms", 3));
}

// One thread, which has a signal to take whenever it is stopped.
TEST(Crowds, OfFaultsThatAreJumpedOutOfAreUnharmedByComingAndGoing) {
  // The instruction that faults is a first one: it is to be displaced, and to be counted.
  const std::vector<std::string> covered = {"--allow-late-uprobe-danger"};
  Victim victim("faults");
  const Traced traced =
      trace_rounds(victim, "faults", entries_of("faults!fault_*"), 3'000, covered);
  for (const auto& [function, calls] : traced.truth)
    EXPECT_EQ(traced.counted.at(function), calls) << function;
  const ProcessState before = ProcessState::of(victim.pid());
  victim.tell("hunt 0");
  attach_again_and_again(victim, entries_and_returns_of("faults!fault_*"), 12, covered);
  victim.tell("counts");
  (void)victim.answer();  // Of the hunt.
  (void)victim.answer();
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
  EXPECT_EQ(victim.run(500), untraced_result("faults", 500));
}

TEST(Crowds, OfProcessesOfOneProgramAreCountedApart) {
  constexpr size_t kProcesses = 50;
  const std::string name = "forms_pie";
  std::vector<std::unique_ptr<Victim>> victims;
  std::vector<std::string> others;
  for (size_t i = 0; i < kProcesses; ++i) {
    victims.push_back(std::make_unique<Victim>(name));
    if (i != 0) others.insert(others.end(), {"-p", std::to_string(victims[i]->pid())});
  }
  Victim bystander(name);
  Tracer tracer = Tracer::attach(victims[0]->pid(),
                                 "from e in entry(\"forms_pie!form_*\") group by e.pid select new "
                                 "{ pid = e.pid, calls = count() }",
                                 others);
  // The text is one file's, and the jumps are in private copies of its pages.
  expect_text_equals_file(bystander.pid());
  EXPECT_EQ(bystander.run(10), untraced_result(name, 10));
  std::map<pid_t, uint64_t> truth;
  for (size_t i = 0; i < kProcesses; ++i) {
    victims[i]->run(10 + i);
    for (const auto& [function, calls] : victims[i]->counts())
      truth[victims[i]->pid()] += calls;
  }
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  std::map<pid_t, uint64_t> counted;
  for (const nlohmann::json& row : report.rows)
    counted[row.at("pid").get<pid_t>()] = row.at("calls").get<uint64_t>();
  EXPECT_EQ(counted, truth);
  for (const auto& victim : victims)
    expect_text_equals_file(victim->pid());
}

}  // namespace
}  // namespace clew::live
