// SPDX-License-Identifier: Apache-2.0
// Sites that can take no jump and have the kernel's uprobes, beside jumps in the same query: one
// answer, as if all of them were jumps.
#include <algorithm>
#include <array>
#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kUprobeRounds = 500;

class Uprobes : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: uprobes need root";
  }
};

// The functions that the summary says have a uprobe.
std::vector<std::string> by_uprobe(const Report& report) {
  std::vector<std::string> names;
  for (const json& site : report.summary.value("uprobes", json::array()))
    names.push_back(site.at("function"));
  std::sort(names.begin(), names.end());
  return names;
}

// What the query answers about `command` of the victim; its text is the file's afterwards.
Report trace(Victim& victim, const std::string& query, const std::string& command,
             const std::vector<std::string>& more = {}) {
  Tracer tracer = Tracer::attach(victim.pid(), query, more);
  victim.ask(command);
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  expect_text_equals_file(victim.pid());
  return report;
}

std::string run_of(uint64_t rounds) {
  return fmt::format("run {}", rounds);
}

uint64_t number(const Report& report, const std::string& name) {
  EXPECT_EQ(report.rows.size(), 1U) << report.error;
  return report.rows.empty() ? 0 : report.rows[0].at(name).get<uint64_t>();
}

TEST_F(Uprobes, CountAFunctionOfLibcThatCanTakeNoJump) {
  Victim victim("uprobed");
  const Report report = trace(victim, "entry(\"libc*!getpid\").Count()", run_of(kUprobeRounds));
  EXPECT_EQ(number(report, "count"), victim.counts().at("getpid"));
  EXPECT_EQ(by_uprobe(report), std::vector<std::string>{"getpid"});
  EXPECT_THAT(report.error, HasSubstr("by uprobe: 1 site (getpid); a hit costs a microsecond"));
  EXPECT_TRUE(report.summary.at("refused").empty());
}

// Both arguments are as they are at a jump: of each function the same sums.
TEST_F(Uprobes, AreInOneTableWithJumps) {
  Victim victim("firsts");
  const uint64_t expected = untraced_result("firsts", kUprobeRounds);
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from e in entry(\"firsts!first_*\") group by e.function select new { name = e.function, "
      "calls = count(), sum = sum(e.arg0), least = min(e.arg0), places = distinct(e.arg1) }");
  EXPECT_EQ(victim.run(kUprobeRounds), expected);
  const Report report = tracer.finish();
  EXPECT_EQ(report.calls(), victim.counts());
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_TRUE(report.summary.at("refused").empty()) << report.summary;
  for (const json& row : report.rows) {
    EXPECT_EQ(row.at("sum"), kUprobeRounds * (kUprobeRounds - 1) / 2) << row;
    EXPECT_EQ(row.at("least"), 0) << row;
    EXPECT_EQ(row.at("places"), 1) << row;
  }
  const size_t uprobes = by_uprobe(report).size();
  EXPECT_GT(uprobes, 2U);
  EXPECT_LT(uprobes, report.rows.size()) << "some are jumps";
  EXPECT_EQ(victim.run(kUprobeRounds), expected);
  expect_text_equals_file(victim.pid());
}

TEST_F(Uprobes, GroupByArguments) {
  Victim victim("firsts");
  const Report report =
      trace(victim,
            "from e in entry(\"firsts!first_push_rsp\"), entry(\"firsts!first_argument_is_cut\") "
            "group by e.arg0 % 10 as digit select digit, count() as calls",
            run_of(kUprobeRounds));
  ASSERT_EQ(report.rows.size(), 10U);
  for (const json& row : report.rows)
    EXPECT_EQ(row.at("calls"), 2 * kUprobeRounds / 10) << row;
  EXPECT_EQ(by_uprobe(report), std::vector<std::string>{"first_argument_is_cut"});
}

TEST_F(Uprobes, GroupByTexts) {
  Victim victim("uprobed");
  const Report report =
      trace(victim,
            "from e in entry(\"uprobed!takes_text\") group by str(e.arg0) as name select name, "
            "count() as calls",
            run_of(300));
  EXPECT_EQ(report.calls(), (Numbers{{"alpha", 100}, {"beta", 100}, {"gamma", 100}}));
  EXPECT_EQ(by_uprobe(report), std::vector<std::string>{"takes_text"});
}

TEST_F(Uprobes, ShowEventsInOrderWithThoseOfJumps) {
  Victim victim("uprobed");
  const Report report =
      trace(victim,
            "from e in entry(\"uprobed!takes_text\"), entry(\"libc*!getpid\") select e.function, "
            "e.time, e.tid, e.pid, e.comm, e.procName, e.module",
            run_of(100));
  ASSERT_EQ(report.rows.size(), 200U);
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const json& row = report.rows[i];
    EXPECT_EQ(row.at("function"), i % 2 == 0 ? "takes_text" : "getpid") << row;
    EXPECT_EQ(row.at("tid"), victim.pid());
    EXPECT_EQ(row.at("pid"), victim.pid());
    EXPECT_EQ(row.at("comm"), "uprobed");
    EXPECT_EQ(row.at("procName"), "uprobed");
  }
  EXPECT_EQ(report.rows[0].at("module"), "uprobed");
  EXPECT_EQ(by_uprobe(report), std::vector<std::string>{"getpid"});
}

TEST_F(Uprobes, ShowEventsWithTexts) {
  Victim victim("uprobed");
  const Report report = trace(
      victim, "from e in entry(\"uprobed!takes_text\") select str(e.arg0) as text", run_of(30));
  ASSERT_EQ(report.rows.size(), 30U);
  constexpr std::array<const char*, 3> kTexts = {"alpha", "beta", "gamma"};
  for (size_t i = 0; i < report.rows.size(); ++i)
    EXPECT_EQ(report.rows[i].at("text"), kTexts.at(i % 3));
}

// Each return with its own entry, however deep.
TEST_F(Uprobes, PairReturnsWithTheirEntries) {
  constexpr uint64_t kDepth = 40;
  Victim victim("uprobed");
  const Report report = trace(
      victim,
      "from e in return(\"uprobed!nests\") where e.retval == e.entry.arg0 select count() as n, "
      "sum(e.retval) as sum, max(e.elapsed) as most",
      fmt::format("nest {}", kDepth));
  EXPECT_EQ(number(report, "n"), kDepth + 1);
  EXPECT_EQ(number(report, "sum"), kDepth * (kDepth + 1) / 2);
  EXPECT_GT(number(report, "most"), 0U);
  EXPECT_EQ(by_uprobe(report), std::vector<std::string>{"nests"});
}

TEST_F(Uprobes, TellTheTimeOfACall) {
  Victim victim("uprobed");
  const Report report =
      trace(victim,
            "from e in return(\"uprobed!naps\") where e.entry.arg0 == 1000 select count() as n, "
            "min(e.elapsed) as least",
            "nap 20");
  EXPECT_EQ(number(report, "n"), 20U);
  EXPECT_GE(number(report, "least"), 1'000'000U);
  EXPECT_EQ(by_uprobe(report), std::vector<std::string>{"naps"});
}

TEST_F(Uprobes, OfFunctionsThatLeaveByAJumpAreNamedBesideTimes) {
  const auto named = [](const std::string& column) {
    Victim victim("uprobed");
    const Report report = trace(victim,
                                "from e in return(\"uprobed!passes_on\") where e.entry.arg0 == 10 "
                                "select count() as n, " +
                                    column,
                                "pass 20");
    EXPECT_EQ(number(report, "n"), 20U);
    EXPECT_EQ(by_uprobe(report), std::vector<std::string>{"passes_on"});
    return report.summary.value("left_by_jump", json::array());
  };
  EXPECT_EQ(named("min(e.elapsed) as least"), json({"passes_on"}));
  EXPECT_TRUE(named("max(e.entry.arg0) as most").empty());
}

// The same places in the program as jumps name.
TEST_F(Uprobes, NameCallers) {
  Victim victim("uprobed");
  const auto callers = [&](const std::vector<std::string>& more) {
    const Report report =
        trace(victim,
              "from e in entry(\"uprobed!nests\") where e.arg0 >= 0 group by e.caller select new { "
              "name = e.caller, calls = count() }",
              "nest 10", more);
    return report.calls();
  };
  const Numbers named = callers({});
  EXPECT_EQ(named, callers({"--allow-late-uprobe-danger"}));
  EXPECT_EQ(named.size(), 2U);
  const Report returns = trace(
      victim,
      "from e in return(\"uprobed!nests\") where e.entry.arg0 >= 0 group by e.caller select new { "
      "name = e.caller, calls = count() }",
      "nest 10");
  EXPECT_EQ(returns.calls(), named);
}

TEST_F(Uprobes, IntervalsAddUpToTheWhole) {
  Victim victim("firsts");
  const Report report = trace(
      victim,
      "from e in entry(\"firsts!first_*\") group by e.function select new { name = e.function, "
      "calls = count(), most = max(e.arg0) }",
      run_of(20'000), {"--every", "20ms"});
  EXPECT_EQ(report.calls(), victim.counts());
}

TEST_F(Uprobes, AreNotSetWhereNobodyWantsThem) {
  Victim victim("uprobed");
  const std::string pid = std::to_string(victim.pid());
  const Report report =
      run_clew({"run", "entry(\"libc*!getpid\").Count()", "--no-uprobes", "-p", pid});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("'getpid' is refused (later-uprobe)"));
  const Report jump = trace(victim, "entry(\"libc*!getpid\").Count()", run_of(kUprobeRounds),
                            {"--allow-late-uprobe-danger"});
  EXPECT_EQ(number(jump, "count"), kUprobeRounds);
  EXPECT_TRUE(by_uprobe(jump).empty()) << "it is a jump";
}

// The kernel takes the uprobes out of a child.
TEST_F(Uprobes, OfAProcessAreNotThoseOfItsChildren) {
  const std::string query =
      count_by_function("entry(\"uprobed!takes_text\"), entry(\"libc*!getpid\")");
  for (const bool follows : {false, true}) {
    Victim victim("uprobed");
    std::vector<std::string> more;
    if (follows) more.emplace_back("--follow");
    Tracer tracer = Tracer::attach(victim.pid(), query, more);
    EXPECT_EQ(victim.ask("fork 200").at("status"), 0U);
    victim.run(kUprobeRounds);
    const Report report = tracer.finish();
    EXPECT_EQ(report.calls().at("getpid"), kUprobeRounds) << report.summary;
    EXPECT_EQ(report.calls().at("takes_text"), kUprobeRounds + (follows ? 200 : 0))
        << report.summary;
    const json& missed = report.summary.at("missed");
    EXPECT_EQ(missed.value("forks_muted", 0), follows ? 0 : 1) << missed;
    EXPECT_EQ(missed.value("forks_without_uprobes", 0), follows ? 1 : 0) << missed;
    EXPECT_EQ(victim.ask("fork 200").at("status"), 0U);
    expect_text_equals_file(victim.pid());
  }
}

TEST_F(Uprobes, OfTwoSessionsCountTheSame) {
  Victim victim("uprobed");
  const std::string query =
      count_by_function("entry(\"libc*!getpid\"), entry(\"uprobed!takes_text\")");
  Tracer first = Tracer::attach(victim.pid(), query);
  Tracer second = Tracer::attach(victim.pid(), query);
  victim.run(kUprobeRounds);
  const Report of_first = first.finish();
  victim.run(kUprobeRounds);
  const Report of_second = second.finish();
  EXPECT_EQ(of_first.calls(), (Numbers{{"getpid", kUprobeRounds}, {"takes_text", kUprobeRounds}}));
  EXPECT_EQ(of_second.calls(),
            (Numbers{{"getpid", 2 * kUprobeRounds}, {"takes_text", 2 * kUprobeRounds}}));
  victim.run(kUprobeRounds);
  expect_text_equals_file(victim.pid());
}

// Whoever comes first.
TEST_F(Uprobes, AndJumpsOfAnotherSessionAreNeverAtOnePlace) {
  const std::string query = "entry(\"libc*!getpid\").Count()";
  for (const bool jump_comes_first : {true, false}) {
    Victim victim("uprobed");
    const std::string pid = std::to_string(victim.pid());
    const std::vector<std::string> jump = {"--allow-late-uprobe-danger"};
    Tracer first =
        Tracer::attach(victim.pid(), query, jump_comes_first ? jump : std::vector<std::string>{});
    std::vector<std::string> arguments = {"run", query, "-p", pid, "--for", "1s"};
    if (!jump_comes_first) arguments.insert(arguments.end(), jump.begin(), jump.end());
    const Report second = run_clew(arguments);
    EXPECT_EQ(second.status, 1);
    EXPECT_THAT(second.error, HasSubstr("'getpid' is refused"));
    victim.run(kUprobeRounds);
    EXPECT_EQ(number(first.finish(), "count"), kUprobeRounds);
    victim.run(kUprobeRounds);
    expect_text_equals_file(victim.pid());
  }
}

TEST_F(Uprobes, NeedRoot) {
  Victim victim({.arguments = {victim_path("uprobed")}, .folder = "/", .as_nobody = true},
                Victim::Place::Started);
  const std::string pid = std::to_string(victim.pid());
  const Report refused = run_clew({"run", "entry(\"libc*!getpid\").Count()", "-p", pid}, true);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error, HasSubstr("(later-uprobe); root would have a uprobe there"));
  Tracer some = Tracer::attach(
      victim.pid(), count_by_function("entry(\"libc*!getpid\"), entry(\"uprobed!takes_text\")"), {},
      true);
  victim.run(kUprobeRounds);
  const Report report = some.finish();
  EXPECT_EQ(report.calls(), (Numbers{{"takes_text", kUprobeRounds}}));
  EXPECT_TRUE(report.refused("getpid", "entry")) << report.summary;
  EXPECT_THAT(report.error, HasSubstr("; root would have uprobes at 1 site that is refused"));
}

// Where nothing of the code has room for a jump. What a uprobe cannot say stays refused: entries
// that are loops, exits by which calls of others leave.
TEST_F(Uprobes, AreSetForOtherReasonsOnRequest) {
  Victim victim("sites");
  const uint64_t expected = untraced_result("sites", kUprobeRounds);
  const std::string query = count_by_function(
      "entry(\"sites!packed_*\"), return(\"sites!packed_*\"), entry(\"sites!loop_at_*\"), "
      "entry(\"sites!jumped_into\"), return(\"sites!jumped_into\")");
  Tracer tracer = Tracer::attach(victim.pid(), query, {"--uprobes"});
  EXPECT_EQ(victim.run(kUprobeRounds), expected);
  const Numbers truth = victim.counts();
  Report report = tracer.finish();
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  for (const char* function : {"packed_ret_a", "packed_ret_b", "packed_ret_c", "packed_zero_a",
                               "packed_load_a", "packed_zero_b", "packed_load_b"})
    EXPECT_EQ(report.calls()[function], 2 * truth.at(function)) << function << report.summary;
  for (const char* function : {"loop_at_1", "loop_at_2", "loop_at_3", "loop_at_4", "jumped_into"})
    EXPECT_EQ(report.calls()[function], truth.at(function)) << function << report.summary;
  EXPECT_TRUE(report.refused("loop_at_0", "entry")) << report.summary;
  EXPECT_TRUE(report.refused("jumped_into", "exit")) << report.summary;
  EXPECT_EQ(victim.run(kUprobeRounds), expected);
  expect_text_equals_file(victim.pid());
}

// No address of the kernel's is put on the stacks, which the program changes as it likes.
TEST_F(Uprobes, LeaveReturnAddressesAlone) {
  for (const char* const name : {"fibers", "coroutines", "contexts", "exceptions", "tails"}) {
    Victim victim(name);
    const uint64_t expected = untraced_result(name, kUprobeRounds);
    const std::string all = fmt::format("{}!*", name);
    Tracer tracer = Tracer::attach(
        victim.pid(),
        fmt::format("from e in return(\"{}\") where e.entry.arg0 != 1 && e.entry.arg1 != 1 && "
                    "e.entry.arg2 != 1 group by e.function select e.function, max(e.elapsed)",
                    all),
        {"--uprobes"});
    EXPECT_EQ(victim.run(kUprobeRounds), expected) << name;
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_FALSE(by_uprobe(report).empty()) << name;
    EXPECT_EQ(victim.run(kUprobeRounds), expected) << name;
    expect_text_equals_file(victim.pid());
  }
}

// Arguments beyond the registers, functions in C, and a file of events.
TEST_F(Uprobes, AreNotSetForWhatTheyCannotKnow) {
  Victim victim("firsts");
  const std::string pid = std::to_string(victim.pid());
  const auto is_refused = [&](const std::string& query, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"run", query, "-p", pid, "--for", "1s"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Report report = run_clew(arguments);
    EXPECT_EQ(report.status, 1) << query << report.error;
    EXPECT_THAT(report.error, HasSubstr("is refused (later-uprobe)")) << query;
  };
  const std::string first = "from e in entry(\"firsts!first_argument_is_cut\") where e.arg0 >= 0 ";
  is_refused(first + "select sum(e.arg7)");
  is_refused(first + "select sum(e.xmm0)");
  is_refused(first + "select e.arg0", {"--spill", "/tmp/clew-uprobes-spill"});
  is_refused(
      "from e in return(\"firsts!first_argument_is_cut\") including open "
      "group by e.entry.arg0 select count()");
}

// A program that the session starts, from its first call on.
TEST_F(Uprobes, OfACommandCountFromItsStart) {
  Child tracer({.arguments = {CLEW_COMMAND, "run", "entry(\"libc*!getpid\").Count()", "--json",
                              "-c", victim_path("uprobed")}});
  tracer.write_line("run 70");
  tracer.write_line("exit");
  tracer.close_input();
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr("{\"count\":70}"));
}

TEST_F(Uprobes, OfAProcessThatIsKilledKeepWhatTheyCounted) {
  Victim victim("uprobed");
  Tracer tracer = Tracer::attach(victim.pid(), "entry(\"libc*!getpid\").Count()");
  victim.run(kUprobeRounds);
  victim.child().signal(SIGKILL);
  const Report report = tracer.wait();
  EXPECT_EQ(number(report, "count"), kUprobeRounds);
  EXPECT_THAT(report.summary.dump(), HasSubstr("was killed by SIGKILL"));
}

// The kernel would execute what the file has there.
TEST_F(Uprobes, AreNotSetWhereTheTextIsNotTheFiles) {
  Victim victim("uprobed");
  victim.ask("patch_getpid 0");
  const std::string pid = std::to_string(victim.pid());
  const Report report =
      run_clew({"run", "entry(\"libc*!getpid\").Count()", "-p", pid, "--for", "1s"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("'getpid' is refused (later-uprobe)"));
  EXPECT_EQ(victim.ask("patch_getpid 0").at("pid"), 7U) << "as it was patched";
}

// Nor in the file then, where --follow wants them.
TEST_F(Uprobes, OfAFileAreNotSetWhereTheTextIsNotTheFiles) {
  Victim victim("uprobed");
  for (const bool is_patched : {false, true}) {
    if (is_patched) victim.ask("patch_getpid 0");
    const Report report =
        run_clew({"run", "--json", "--follow", "--for", "1s", "-p", std::to_string(victim.pid()),
                  "from f in offset(\"libc.so.6!getpid\", 0), syscall(\"getppid\") "
                  "group by f.ustack(1) select new { calls = count() }"});
    const bool is_there = report.summary.is_object() && report.summary.value("sites", 0) == 2;
    EXPECT_EQ(is_there, !is_patched) << report.error;
    EXPECT_EQ(report.status, 0);  // The system call is counted all the same.
  }
}

TEST_F(Uprobes, CountDownEvents) {
  Victim victim("uprobed");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in entry(\"libc*!getpid\"), entry(\"uprobed!takes_text\") "
                                 "select count() as n for 100 "
                                 "events");
  victim.run(kUprobeRounds);
  const Report report = tracer.wait();
  EXPECT_GE(number(report, "n"), 100U);
}

TEST_F(Uprobes, OfSeveralProcessesAreCountedInEach) {
  Victim one("uprobed");
  Victim other("uprobed");
  Tracer tracer = Tracer::attach(one.pid(),
                                 "from e in entry(\"libc*!getpid\") group by e.pid select e.pid, "
                                 "count() as calls",
                                 {"-p", std::to_string(other.pid())});
  one.run(100);
  other.run(300);
  const Report report = tracer.finish();
  std::map<pid_t, uint64_t> calls;
  for (const json& row : report.rows)
    calls[row.at("pid")] = row.at("calls");
  EXPECT_EQ(calls, (std::map<pid_t, uint64_t>{{one.pid(), 100}, {other.pid(), 300}}));
  EXPECT_EQ(by_uprobe(report).size(), 2U);
}

TEST_F(Uprobes, StandBesideSourcesOfTheKernel) {
  Victim victim("uprobed");
  const Report report =
      trace(victim,
            count_by_function(
                "entry(\"libc*!getpid\"), syscall(\"getpid\"), entry(\"uprobed!takes_text\")"),
            run_of(kUprobeRounds));
  EXPECT_EQ(report.calls(),
            (Numbers{{"getpid", 2 * kUprobeRounds}, {"takes_text", kUprobeRounds}}));
}

TEST_F(Uprobes, AreToldBeforehand) {
  Victim victim("uprobed");
  const std::string pid = std::to_string(victim.pid());
  const auto said = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {CLEW_COMMAND};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Child({.arguments = all}).wait_for_end().output;
  };
  EXPECT_THAT(said({"list", "libc*!getpid", "--sites", "-p", pid}),
              HasSubstr("entry: later-uprobe (uprobe), exits: yes"));
  const std::string query = "entry(\"libc*!getpid\").Count()";
  EXPECT_THAT(said({"explain", query, "-p", pid}),
              testing::AllOf(HasSubstr("by uprobe:   1  entry later-uprobe"),
                             HasSubstr("in the kernel, at uprobes")));
  EXPECT_THAT(said({"explain", query, "-p", pid, "--no-uprobes"}), Not(HasSubstr("at uprobes")));
}

}  // namespace
}  // namespace clew::live
