// SPDX-License-Identifier: Apache-2.0
// Functions that are left in unusual ways: by exceptions, cancellation, tail calls, on another
// stack or thread; and return values and registers that a probe must not disturb.
#include <gtest/gtest.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr uint64_t kRounds = 500;

Traced trace(const std::string& name, const std::string& query, uint64_t rounds = kRounds) {
  Victim victim(name);
  return trace_rounds(victim, name, query, rounds);
}

// Entry and return in one query, told apart by the probe.
std::string both_of(const std::string& pattern) {
  return count_by_function("entry(\"" + pattern + "\"), return(\"" + pattern + "\")");
}

TEST(Exits, ExceptionsPassThroughTracedFrames) {
  const Traced entries = trace("exceptions", both_of("exceptions!*"));
  // A call that is left by an exception is entered and not returned from.
  for (const char* name : {"throw_odd", "middle_frame"}) {
    const uint64_t thrown = entries.truth.at(std::string("thrown_") + name);
    EXPECT_EQ(entries.counted.at(name), 2 * entries.truth.at(name) - thrown) << name;
  }
  EXPECT_EQ(entries.counted.at("catch_here"), 2 * entries.truth.at("catch_here"));
  // Odd rounds throw through it as well.
  EXPECT_EQ(entries.counted.at("through_c"),
            2 * entries.truth.at("through_c") - entries.truth.at("thrown_throw_odd"));
}

TEST(Exits, ALibraryWithItsOwnRuntimeThrowsAsBefore) {
  const Traced traced = trace("exceptions", entries_of("libthrower.so!library_*"));
  expect_exact({.counted = traced.counted,
                .truth = {{"library_throws", traced.truth.at("library_throws")},
                          {"library_catches", traced.truth.at("library_catches")}},
                .report = traced.report},
               "entry");
}

TEST(Exits, EveryFunctionOfAThrowingLibraryCanBeTraced) {
  trace("exceptions", both_of("libthrower.so!*"));  // Checks the victim's results.
}

TEST(Exits, ARustPanicIsCaughtAsBefore) {
  if (access(victim_path("panics").c_str(), X_OK) != 0) GTEST_SKIP() << "no rustc";
  const Traced traced = trace("panics", entries_of("panics!panic_*"));
  EXPECT_EQ(traced.counted.at("panic_odd"), traced.truth.at("panic_odd"));
  EXPECT_EQ(traced.counted.at("panic_middle"), traced.truth.at("panic_middle"));
}

TEST(Exits, CancelledThreadsRunTheirCleanUpHandlers) {
  const Traced traced = trace("cancel", entries_of("cancel!*"), 100);
  expect_exact(traced, "entry");
}

TEST(Exits, CancelledThreadsLeaveNoReturnBehind) {
  const Traced traced = trace("cancel", returns_of("cancel!*_frame"), 100);
  const uint64_t returned = 100 / 4;  // One ending of four returns.
  for (const char* name : {"inner_frame", "middle_frame", "outer_frame"}) {
    EXPECT_EQ(traced.counted.at(name), returned) << name;
  }
}

TEST(Exits, FunctionsLeftOnAnotherStackOrThreadAreCounted) {
  const Traced entries = trace("fibers", entries_of("fibers!*"));
  expect_exact(entries, "entry");
  const Traced returns = trace("fibers", returns_of("fibers!*"));
  EXPECT_EQ(returns.counted.at("across_switch"), returns.truth.at("across_switch"));
  EXPECT_EQ(returns.counted.at("between"), returns.truth.at("between"));
}

// Calls that end on another thread than the one that entered have no entry there: they are counted
// as lost, not measured wrongly.
TEST(Exits, ElapsedTimeAcrossFibersIsRightOrCountedAsLost) {
  Victim victim("fibers");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from e in return(\"fibers!across_switch\") group by e.function select new "
                     "{ name = e.function, calls = count(), longest = max(e.elapsed) }");
  const Numbers before = victim.counts();
  victim.run(kRounds);
  const Numbers calls = difference(before, victim.counts());
  const Report report = tracer.finish();
  const uint64_t unpaired = report.summary.at("missed").value("unpaired", uint64_t{0});
  EXPECT_EQ(report.calls()["across_switch"] + unpaired, calls.at("across_switch"))
      << report.summary;
}

TEST(Exits, TailCallsDoNotGrowTheStackAndBothFunctionsAreCounted) {
  constexpr uint64_t kDepth = 10'000'000;
  const Traced entries = trace("tails", entries_of("tails!tail_*"), kDepth);
  expect_exact(entries, "entry");
  // A call that ends in a jump is left by it.
  const Traced returns = trace("tails", returns_of("tails!tail_*"), kDepth);
  expect_exact(returns, "exit");
}

TEST(Exits, EveryClassOfReturnValueAndEveryRegisterSurvives) {
  Traced entries = trace("returns", entries_of("returns!*"));
  entries.counted["nested"] = entries.counted["nested.0"];  // The compiler's name of it.
  expect_exact(entries, "entry");
  const Traced both = trace("returns", both_of("returns!*"));
  for (const char* name : {"return_wide", "return_complex", "return_vector", "quiet_callee"}) {
    if (both.truth.at(name) == 0) continue;  // No AVX-512 here.
    EXPECT_EQ(both.counted.at(name), 2 * both.truth.at(name)) << name;
  }
}

}  // namespace
}  // namespace clew::live
