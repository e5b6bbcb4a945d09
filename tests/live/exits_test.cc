// SPDX-License-Identifier: Apache-2.0
// Functions that are left in unusual ways: by exceptions, cancellation, tail calls, on another
// stack or thread; and return values and registers that a probe must not disturb.
#include <array>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr uint64_t kExitRounds = 500;

Traced trace_exits(const std::string& name, const std::string& query,
                   uint64_t rounds = kExitRounds) {
  Victim victim(name);
  return trace_rounds(victim, name, query, rounds);
}

// Entry and return in one query, told apart by the probe.
std::string both_of(const std::string& pattern) {
  return count_by_function("entry(\"" + pattern + "\"), return(\"" + pattern + "\")");
}

TEST(Exits, ExceptionsPassThroughTracedFrames) {
  const Traced entries = trace_exits("exceptions", both_of("exceptions!*"));
  // A call that is left by an exception is entered and not returned from.
  for (const char* name : {"throw_odd", "middle_frame"}) {
    const uint64_t thrown = entries.truth.at(std::string("thrown_") + name);
    EXPECT_EQ(entries.counted.at(name), 2 * entries.truth.at(name) - thrown) << name;
  }
  EXPECT_EQ(entries.counted.at("catch_here"), 2 * entries.truth.at("catch_here"));
  // Odd rounds throw through it as well.
  EXPECT_EQ(entries.counted.at("through_c"),
            2 * entries.truth.at("through_c") - entries.truth.at("thrown_middle_frame"));
}

TEST(Exits, ALibraryWithItsOwnRuntimeThrowsAsBefore) {
  const Traced traced = trace_exits("exceptions", entries_of("libthrower.so!library_*"));
  expect_exact({.counted = traced.counted,
                .truth = {{"library_throws", traced.truth.at("library_throws")},
                          {"library_catches", traced.truth.at("library_catches")}},
                .report = traced.report},
               "entry");
}

TEST(Exits, EveryFunctionOfAThrowingLibraryCanBeTraced) {
  trace_exits("exceptions", both_of("libthrower.so!*"));  // Checks the victim's results.
}

std::string exceptions_of(const std::string& pattern) {
  return count_by_function("exception(\"" + pattern + "\")");
}

constexpr std::array kLeft = {"throw_odd", "middle_frame", "rethrow_frame", "nested_frame",
                              "deep_frame"};

// The functions that catch are not left. In a destructor that runs for one exception, another is
// thrown and caught, by a call at the place of the stack where the first was thrown.
TEST(Exits, AnExceptionProbeFiresOncePerCallLeftByOne) {
  Traced left = trace_exits("exceptions", exceptions_of("exceptions!*"));
  for (const char* name : kLeft) {
    EXPECT_EQ(left.counted[name], left.truth.at(std::string("thrown_") + name)) << name;
  }
  EXPECT_EQ(left.counted["through_c"], left.truth.at("thrown_middle_frame"));
  for (const char* name :
       {"catch_here", "catch_call", "catch_from_library", "victim_run", "jump_out"}) {
    EXPECT_EQ(left.counted.count(name), 0U) << name;
  }
}

TEST(Exits, AProgramWithoutAnUnwinderAnswersZeroAndANote) {
  const Traced left = trace_exits("sites", exceptions_of("sites!*"));
  EXPECT_TRUE(left.counted.empty());
  ASSERT_EQ(left.report.summary.at("lost").size(), 1U) << left.report.summary;
  EXPECT_NE(left.report.summary.at("lost")[0].get<std::string>().find("_Unwind_RaiseException"),
            std::string::npos);
}

TEST(Exits, EntriesAreReturnsAndExceptions) {
  const Traced traced =
      trace_exits("exceptions",
                  "from e in entry(\"exceptions!*_*\"), return(\"exceptions!*_*\"), "
                  "exception(\"exceptions!*_*\") group by e.function, e.probe "
                  "select new { name = e.function, probe = e.probe, calls = count() }");
  std::map<std::string, Numbers> calls;  // By function and the first word of the probe.
  for (const nlohmann::json& row : traced.report.rows) {
    const auto probe = row.at("probe").get<std::string>();
    calls[row.at("name").get<std::string>()][probe.substr(0, probe.find('('))] +=
        row.at("calls").get<uint64_t>();
  }
  for (const char* name : kLeft) {
    Numbers& of = calls[name];
    EXPECT_GT(of["exception"], 0U) << name;
    EXPECT_EQ(of["entry"], traced.truth.at(name)) << name;
    EXPECT_EQ(of["entry"], of["return"] + of["exception"]) << name;
  }
  EXPECT_EQ(calls["catch_call"]["entry"], calls["catch_call"]["return"]);
}

// Keys from the record, in cells, in a table and in events.
TEST(Exits, AnExceptionProbeKnowsTheCallThatIsLeft) {
  const std::string source = "from e in exception(\"exceptions!throw_odd\") ";
  const Traced times =
      trace_exits("exceptions", source +
                                    "group by e.function select new { name = e.function, "
                                    "calls = count(), shortest = min(e.elapsed), "
                                    "longest = max(e.elapsed), largest = max(e.entry.arg0) }");
  ASSERT_EQ(times.report.rows.size(), 1U);
  const nlohmann::json& row = times.report.rows[0];
  EXPECT_EQ(row.at("calls"), times.truth.at("thrown_throw_odd"));
  EXPECT_GT(row.at("shortest"), 0);
  EXPECT_LT(row.at("longest"), 1'000'000'000);
  EXPECT_EQ(row.at("largest"), 2 * (kExitRounds - 1) + 1);
  const Traced calls = trace_exits(
      "exceptions", source +
                        "group by e.function, e.entry.arg0 select new { name = e.function, "
                        "argument = e.entry.arg0, calls = count() }");
  EXPECT_EQ(calls.counted, (Numbers{{"throw_odd", calls.truth.at("thrown_throw_odd")}}));
  const Traced events = trace_exits("exceptions", source +
                                                      "select new { name = e.function, calls = 1, "
                                                      "argument = e.entry.arg0, from = e.caller }");
  EXPECT_EQ(events.counted, (Numbers{{"throw_odd", events.truth.at("thrown_throw_odd")}}));
  for (const nlohmann::json& event : events.report.rows) {
    EXPECT_EQ(event.at("argument").get<uint64_t>() % 2, 1U);
    EXPECT_THAT(event.at("from").get<std::string>(), testing::StartsWith("exceptions!"));
  }
}

TEST(Exits, AnExceptionThatLeavesALibraryWithItsOwnUnwinderIsSeen) {
  Traced left = trace_exits("exceptions", exceptions_of("libthrower.so!library_*"));
  EXPECT_EQ(left.counted,
            (Numbers{{"library_throws", kExitRounds}}));  // Two calls of an odd round.
}

TEST(Exits, ALibraryThatIsLoadedLaterCanThrow) {
  Victim victim("exceptions");
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer tracer =
      Tracer::attach(victim.pid(), exceptions_of("liblate_thrower.so!*"), {"--allow-missing"});
  victim.ask("late " + std::to_string(kExitRounds));
  const Numbers truth = victim.counts();
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_EQ(report.calls(), (Numbers{{"late_throws", truth.at("thrown_late_throws")}}));
  expect_text_equals_file(victim.pid());
}

TEST(Exits, TwoSessionsSeeTheSameExceptions) {
  Victim victim("exceptions");
  victim.run(1);
  Tracer first = Tracer::attach(victim.pid(), exceptions_of("exceptions!deep_*"));
  Tracer second = Tracer::attach(victim.pid(), exceptions_of("exceptions!*_frame"));
  const Numbers before = victim.counts();
  victim.run(kExitRounds);
  const Numbers truth = difference(before, victim.counts());
  EXPECT_EQ(first.finish().calls()["deep_frame"], truth.at("thrown_deep_frame"));
  EXPECT_EQ(second.finish().calls()["middle_frame"], truth.at("thrown_middle_frame"));
  expect_text_equals_file(victim.pid());
}

TEST(Exits, ARustPanicIsCaughtAsBefore) {
  ASSERT_EQ(access(victim_path("panics").c_str(), X_OK), 0) << "no rustc";
  const Traced traced = trace_exits("panics", entries_of("panics!panic_*"));
  EXPECT_EQ(traced.counted.at("panic_odd"), traced.truth.at("panic_odd"));
  EXPECT_EQ(traced.counted.at("panic_middle"), traced.truth.at("panic_middle"));
}

TEST(Exits, ARustPanicLeavesCalls) {
  ASSERT_EQ(access(victim_path("panics").c_str(), X_OK), 0) << "no rustc";
  Traced left = trace_exits("panics", exceptions_of("panics!panic_*"));
  EXPECT_EQ(left.counted["panic_odd"], kExitRounds / 2);
  EXPECT_EQ(left.counted["panic_middle"], kExitRounds / 2);
}

TEST(Exits, CancelledThreadsAreNotHarmedByExceptionProbes) {
  trace_exits("cancel", exceptions_of("cancel!*"), 100);  // Checks the victim's results.
}

TEST(Exits, CancelledThreadsRunTheirCleanUpHandlers) {
  const Traced traced = trace_exits("cancel", entries_of("cancel!*"), 100);
  expect_exact(traced, "entry");
}

TEST(Exits, CancelledThreadsLeaveNoReturnBehind) {
  const Traced traced = trace_exits("cancel", returns_of("cancel!*_frame"), 100);
  const uint64_t returned = 100 / 4;  // One ending of four returns.
  for (const char* name : {"inner_frame", "middle_frame", "outer_frame"}) {
    EXPECT_EQ(traced.counted.at(name), returned) << name;
  }
}

TEST(Exits, FunctionsLeftOnAnotherStackOrThreadAreCounted) {
  const Traced entries = trace_exits("fibers", entries_of("fibers!*"));
  expect_exact(entries, "entry");
  const Traced returns = trace_exits("fibers", returns_of("fibers!*"));
  EXPECT_EQ(returns.counted.at("across_switch"), returns.truth.at("across_switch"));
  EXPECT_EQ(returns.counted.at("between"), returns.truth.at("between"));
}

TEST(Exits, FunctionsLeftInContextsOfTheCLibraryAreCounted) {
  const Traced both = trace_exits("contexts", both_of("contexts!context_*"));
  for (const char* name : {"context_body", "context_step"})
    EXPECT_EQ(both.counted.at(name), 2 * both.truth.at(name)) << name;
  Traced all = trace_exits("contexts", both_of("contexts!*"));  // Checks the victim's results.
  EXPECT_EQ(all.counted["context_step"], 2 * all.truth.at("context_step"));
}

// Left on the stack of a fiber, in another order than they were entered.
TEST(Exits, FunctionsLeftInFibersOfBoostAreCounted) {
  ASSERT_EQ(access(victim_path("boost_fibers").c_str(), X_OK), 0) << "no libboost-context-dev";
  const Traced both = trace_exits("boost_fibers", both_of("boost_fibers!fiber_*"));
  for (const char* name : {"fiber_body", "fiber_step"})
    EXPECT_EQ(both.counted.at(name), 2 * both.truth.at(name)) << name;
  trace_exits("boost_fibers", both_of("boost_fibers!*"), 100);  // Checks the victim's results.
}

// A victim and its clock: the sum of the times of all calls is between what it measured from inside
// and from outside, but for the difference between its clock and the processor's.
TEST(Exits, EachCallInAFiberOfBoostHasItsOwnTime) {
  Victim victim("boost_fibers");
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in return("boost_fibers!fiber_body")
                       select calls = count(), took = sum(e.elapsed), least = min(e.elapsed))");
  victim.run(kExitRounds);
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const nlohmann::json& row = report.rows.at(0);
  EXPECT_EQ(row.at("calls"), truth.at("fiber_body"));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_GE(row.at("took").get<double>(), static_cast<double>(truth.at("inside_ns")) * 0.999);
  EXPECT_LE(row.at("took").get<double>(), static_cast<double>(truth.at("outside_ns")) * 1.001);
  EXPECT_GT(row.at("least"), 0);
}

// Entered on one thread, left on another: counted there, and paired or told to be lost.
TEST(Exits, FibersOfBoostThatMoveToAnotherThreadAreCounted) {
  constexpr uint64_t kMoves = 50;
  Victim victim("boost_fibers");
  const uint64_t expected = victim.ask("move " + std::to_string(kMoves)).at("result");
  const Numbers before = victim.counts();
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from e in entry(\"boost_fibers!fiber_*\"), return(\"boost_fibers!fiber_*\") "
                     "group by e.function select new { name = e.function, calls = count() }");
  EXPECT_EQ(victim.ask("move " + std::to_string(kMoves)).at("result"), expected);
  const Numbers truth = difference(before, victim.counts());
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  for (const char* name : {"fiber_body", "fiber_step"})
    EXPECT_EQ(report.calls().at(name), 2 * truth.at(name)) << name;
  EXPECT_EQ(victim.ask("move " + std::to_string(kMoves)).at("result"), expected);
  expect_text_equals_file(victim.pid());
}

// By an exception that the fiber's own code never sees.
TEST(Exits, AFiberOfBoostThatIsDestroyedLeavesItsCalls) {
  constexpr uint64_t kFibers = 50;
  Victim victim("boost_fibers");
  Tracer tracer = Tracer::attach(victim.pid(), exceptions_of("boost_fibers!fiber_*"));
  victim.ask("destroy " + std::to_string(kFibers));
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"fiber_destroyed", kFibers}, {"fiber_step", kFibers}}));
  EXPECT_EQ(victim.counts().at("fiber_unwound"), kFibers);
  expect_text_equals_file(victim.pid());
}

// A coroutine is several functions of one name: the one that makes it, the one that runs it, and
// the one that destroys it. How they call each other is the compiler's.
TEST(Exits, CoroutinesAreCountedWhereTheyAreMadeResumedAndLeft) {
  Traced entries = trace_exits("coroutines", entries_of("coroutines!*"), 100);
  Traced returns = trace_exits("coroutines", returns_of("coroutines!*"), 100);
  EXPECT_GE(entries.counted["numbers"], entries.truth.at("made") + entries.truth.at("resumed"));
  EXPECT_EQ(entries.counted["numbers"], returns.counted["numbers"]);
  for (const char* name : {"resume_one", "destroy_early"}) {
    EXPECT_EQ(entries.counted[name], entries.truth.at(name)) << name;
    EXPECT_EQ(returns.counted[name], returns.truth.at(name)) << name;
  }
  Traced left = trace_exits("coroutines", exceptions_of("coroutines!inside"), 100);
  EXPECT_GT(left.counted["inside"], 0U);
  EXPECT_EQ(entries.counted["inside"], entries.truth.at("inside"));
  EXPECT_EQ(returns.counted["inside"] + left.counted["inside"], returns.truth.at("inside"));
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
  victim.run(kExitRounds);
  const Numbers calls = difference(before, victim.counts());
  const Report report = tracer.finish();
  const uint64_t unpaired = report.summary.at("missed").value("unpaired", uint64_t{0});
  EXPECT_EQ(report.calls()["across_switch"] + unpaired, calls.at("across_switch"))
      << report.summary;
}

TEST(Exits, TailCallsDoNotGrowTheStackAndBothFunctionsAreCounted) {
  constexpr uint64_t kDepth = 10'000'000;
  const Traced entries = trace_exits("tails", entries_of("tails!tail_*"), kDepth);
  expect_exact(entries, "entry");
  // A call that ends in a jump is left by it.
  const Traced returns = trace_exits("tails", returns_of("tails!tail_*"), kDepth);
  expect_exact(returns, "exit");
}

TEST(Exits, FunctionsThatLeaveByAJumpAreNamedBesideTimes) {
  const auto named = [](const std::string& columns) {
    Victim victim("tails");
    Tracer tracer = Tracer::attach(victim.pid(),
                                   "from e in return(\"tails!tail_*\") group by "
                                   "e.function select e.function, " +
                                       columns);
    victim.run(10);
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    return report.summary.value("left_by_jump", nlohmann::json::array());
  };
  EXPECT_EQ(named("max(e.elapsed)"), nlohmann::json({"tail_even", "tail_odd"}));
  EXPECT_TRUE(named("count()").empty());
}

TEST(Exits, FunctionsOfALaterLibraryThatLeaveByAJumpAreNamed) {
  Victim victim("plugins");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in return(\"libplugin_a.so!plugin_*\") group by "
                                 "e.function select e.function, max(e.elapsed)",
                                 {"--allow-missing"});
  victim.run(10);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.summary.value("left_by_jump", nlohmann::json::array()),
            nlohmann::json({"plugin_jump"}));
}

TEST(Exits, EveryClassOfReturnValueAndEveryRegisterSurvives) {
  Traced entries = trace_exits("returns", entries_of("returns!*"));
  entries.counted["nested"] = entries.counted["nested.0"];  // The compiler's name of it.
  expect_exact(entries, "entry");
  const Traced both = trace_exits("returns", both_of("returns!*"));
  for (const char* name : {"return_wide", "return_complex", "return_vector", "quiet_callee"}) {
    if (both.truth.at(name) == 0) continue;  // No AVX-512 here.
    EXPECT_EQ(both.counted.at(name), 2 * both.truth.at(name)) << name;
  }
}

// Hand-written code: no compiler reads flags behind a call, or at the entry of a function.
TEST(Exits, FlagsThatAreResultsOrArgumentsSurvive) {
  expect_exact(trace_exits("flags", entries_of("flags!flag_*")), "entry");
  expect_exact(trace_exits("flags", returns_of("flags!flag_*")), "exit");
  const Traced both = trace_exits("flags", both_of("flags!flag_*"));
  for (const auto& [name, calls] : both.counted)
    EXPECT_EQ(calls, 2 * both.truth.at(name)) << name;
  // With pairs of them, whose bodies are guarded and call accessors.
  expect_exact(
      trace_exits("flags",
                  "from r in return(\"flags!flag_*\") group by r.function select new { name = "
                  "r.function, calls = count(), longest = max(r.elapsed) }"),
      "exit");
}

}  // namespace
}  // namespace clew::live
