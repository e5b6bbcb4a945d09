// SPDX-License-Identifier: Apache-2.0
// Uprobes and breakpoints that others set during a session, at every entry, and take away again:
// the program goes on as if nobody looked, whatever the session's probes read.
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/uprobe.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kStrangerRounds = 50;

std::string values_of(const std::string& pattern) {
  return "from e in entry(\"" + pattern +
         "\") select calls = count(), first = sum(e.arg0), second = max(e.arg1), "
         "third = sum(e.arg2)";
}

// By function, of those whose bytes serve both ways.
constexpr const char* kBothWays =
    R"(from e in entry("firsts!first_both_*") group by e.function
       select new { name = e.function, calls = count(), sum = sum(e.arg0) })";
constexpr uint64_t kBothFunctions = 3;

// So many calls with the numbers from 0 on, each.
void expect_values(const Report& report, uint64_t rounds, uint64_t times = 1) {
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_TRUE(report.summary.at("refused").empty()) << report.summary;
  EXPECT_EQ(report.rows.size(), kBothFunctions);
  for (const auto& row : report.rows) {
    EXPECT_EQ(row.at("calls"), times * rounds) << row;
    EXPECT_EQ(row.at("sum"), times * rounds * (rounds - 1) / 2) << row;
  }
}

Numbers both_ways_functions(Victim& victim) {
  Numbers functions = victim.ask("addresses 0");
  std::erase_if(functions, [](const auto& one) { return !one.first.starts_with("first_both"); });
  EXPECT_EQ(functions.size(), kBothFunctions);
  return functions;
}

// Of a program that begins at its first mapping.
Numbers functions_of(const Victim& victim, const std::string& pattern) {
  const std::string pid = std::to_string(victim.pid());
  Child list({.arguments = {CLEW_COMMAND, "list", pattern, "--json", "-p", pid}});
  std::istringstream lines(list.wait_for_end().output);
  std::ifstream maps("/proc/" + pid + "/maps");
  uint64_t bias = 0;
  maps >> std::hex >> bias;
  Numbers functions;
  for (std::string line; std::getline(lines, line);) {
    const auto function = nlohmann::json::parse(line);
    functions[function.at("function")] = bias + function.at("address").get<uint64_t>();
  }
  return functions;
}

struct Visit {
  std::string name;
  std::string pattern;
  std::string query;
  Uprobe::Kind kind = Uprobe::Kind::Entry;
};

void expect_harmless(const Visit& visit) {
  Victim victim(visit.name);
  const uint64_t expected = untraced_result(visit.name, kStrangerRounds);
  const Numbers functions = functions_of(victim, visit.pattern);
  ASSERT_GT(functions.size(), 4U) << visit.pattern;
  Tracer tracer = Tracer::attach(victim.pid(), visit.query);
  std::vector<Uprobe> probes;
  probes.reserve(functions.size());
  for (const auto& [function, address] : functions)
    probes.emplace_back(victim.pid(), address, visit.kind, Uprobe::Where::ThisProcess);
  NEED_UPROBE(probes.front());
  EXPECT_EQ(victim.run(kStrangerRounds), expected) << visit.query;
  probes.clear();
  EXPECT_EQ(victim.run(kStrangerRounds), expected) << "they have left: " << visit.query;
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(victim.run(kStrangerRounds), expected) << "all have left: " << visit.query;
  expect_text_equals_file(victim.pid());
}

TEST(Strangers, WhoseUprobesComeToEveryEntryAndLeaveHarmNothing) {
  const std::string firsts = "firsts!first_*";
  expect_harmless({"firsts", firsts, entries_and_returns_of(firsts)});
  expect_harmless({"firsts", firsts, values_of(firsts), Uprobe::Kind::Return});
  expect_harmless({"sites", "sites!*", values_of("sites!*")});
}

// A debugger has its breakpoints there while the victim runs one round.
void run_under_debugger(Victim& victim, const Numbers& functions) {
  ASSERT_EQ(access("/usr/bin/gdb", X_OK), 0) << "no gdb";
  const uint64_t expected = untraced_result("firsts", 1);
  std::vector<std::string> arguments = {"gdb",    "-q", "-nx",
                                        "-batch", "-p", std::to_string(victim.pid())};
  const auto tell = [&arguments](std::string command) {
    arguments.emplace_back("-ex");
    arguments.push_back(std::move(command));
  };
  for (const auto& [function, address] : functions)
    tell("break *" + std::to_string(address));
  tell("printf \"set\\n\"");
  for (size_t i = 0; i <= functions.size(); ++i)
    tell("continue");
  tell("detach");
  // It stops once at each function, and last where it is told to.
  Child debugger({.arguments = arguments, .environment = {"DEBUGINFOD_URLS="}});
  for (auto line = debugger.read_line(); line && *line != "set"; line = debugger.read_line()) {
  }
  victim.tell("run 1");
  EXPECT_EQ(victim.answer().at("result"), expected);
  debugger.signal(SIGINT);
  debugger.wait_for_end();
}

TEST(Strangers, WhoseBreakpointsComeToEveryEntryAndLeaveHarmNothing) {
  const std::string name = "firsts";
  Victim victim(name);
  Tracer tracer = Tracer::attach(victim.pid(), entries_and_returns_of("firsts!first_*"));
  run_under_debugger(victim, victim.ask("addresses 0"));
  EXPECT_EQ(victim.run(1), untraced_result(name, 1));
  const Report report = tracer.finish();
  const Numbers truth = victim.counts();
  for (const auto& [function, calls] : truth)
    EXPECT_EQ(report.calls()[function], 2 * calls) << function << report.error;
  expect_text_equals_file(victim.pid());
}

// A debugger steps over what it has found there, so that no value is lost.
TEST(Strangers, WhoseBreakpointsComeToBytesThatServeBothWaysTakeNoValue) {
  Victim victim("firsts");
  Tracer tracer = Tracer::attach(victim.pid(), kBothWays);
  run_under_debugger(victim, both_ways_functions(victim));
  EXPECT_EQ(victim.run(kStrangerRounds), untraced_result("firsts", kStrangerRounds));
  const Report report = tracer.finish();
  EXPECT_EQ(report.unreadable(), 0U) << report.summary;
  for (const auto& row : report.rows) {
    EXPECT_EQ(row.at("calls"), kStrangerRounds + 1) << row;
    EXPECT_EQ(row.at("sum"), kStrangerRounds * (kStrangerRounds - 1) / 2) << row;
  }
  expect_text_equals_file(victim.pid());
}

// Their hits are counted on both sides; those of the session's as lost, since the kernel does the
// first instruction. When they have gone its first byte is the file's, until the session's end.
TEST(Strangers, WhoComeToBytesThatServeBothWaysTakeValuesAndEachIsCounted) {
  for (const Uprobe::Kind kind : {Uprobe::Kind::Entry, Uprobe::Kind::Return}) {
    Victim victim("firsts");
    const uint64_t expected = untraced_result("firsts", kStrangerRounds);
    Tracer tracer = Tracer::attach(victim.pid(), kBothWays, {"--no-uprobes"});
    EXPECT_EQ(victim.run(kStrangerRounds), expected);
    std::vector<Uprobe> probes;
    for (const auto& [function, address] : both_ways_functions(victim))
      probes.emplace_back(victim.pid(), address, kind, Uprobe::Where::ThisProcess);
    NEED_UPROBE(probes.front());
    EXPECT_EQ(victim.run(kStrangerRounds), expected);
    for (const Uprobe& probe : probes)
      EXPECT_EQ(probe.hits(), kStrangerRounds);
    probes.clear();
    EXPECT_EQ(victim.run(kStrangerRounds), expected);
    const Report report = tracer.finish();
    expect_values(report, kStrangerRounds);
    EXPECT_EQ(report.unreadable(), 2 * kStrangerRounds * kBothFunctions) << report.summary;
    EXPECT_EQ(victim.run(kStrangerRounds), expected);
    expect_text_equals_file(victim.pid());
  }
}

// The session leaves while they are there: its jumps go, their traps stay.
TEST(Strangers, WhoStayAtBytesThatServeBothWaysHarmNothing) {
  Victim victim("firsts");
  const uint64_t expected = untraced_result("firsts", kStrangerRounds);
  Tracer tracer = Tracer::attach(victim.pid(), kBothWays, {"--no-uprobes"});
  std::vector<Uprobe> probes;
  for (const auto& [function, address] : both_ways_functions(victim))
    probes.emplace_back(victim.pid(), address, Uprobe::Kind::Entry, Uprobe::Where::ThisProcess);
  NEED_UPROBE(probes.front());
  EXPECT_EQ(victim.run(kStrangerRounds), expected);
  EXPECT_EQ(tracer.finish().status, 0);
  EXPECT_EQ(victim.run(kStrangerRounds), expected);
  for (const Uprobe& probe : probes)
    EXPECT_EQ(probe.hits(), 2 * kStrangerRounds);
  probes.clear();
  EXPECT_EQ(victim.run(kStrangerRounds), expected);
  expect_text_equals_file(victim.pid());
}

// Where they are first there are uprobes of the session's own, as before: no value is lost.
TEST(Strangers, WhoAreThereFirstShareWithAUprobeOfTheSession) {
  Victim victim("firsts");
  const uint64_t expected = untraced_result("firsts", kStrangerRounds);
  std::vector<Uprobe> probes;
  for (const auto& [function, address] : both_ways_functions(victim))
    probes.emplace_back(victim.pid(), address, Uprobe::Kind::Entry, Uprobe::Where::ThisProcess);
  NEED_UPROBE(probes.front());
  Tracer tracer = Tracer::attach(victim.pid(), kBothWays);
  EXPECT_EQ(victim.run(kStrangerRounds), expected);
  const Report report = tracer.finish();
  expect_values(report, kStrangerRounds);
  EXPECT_EQ(report.unreadable(), 0U) << report.summary;
  for (const Uprobe& probe : probes)
    EXPECT_EQ(probe.hits(), kStrangerRounds);
  probes.clear();
  EXPECT_EQ(victim.run(kStrangerRounds), expected);
  expect_text_equals_file(victim.pid());
}

// Of a tracer that is killed, whether a uprobe has come and gone meanwhile or not.
TEST(Strangers, FindBytesThatServeBothWaysTakenBackByDetach) {
  for (const bool uprobes_have_gone : {false, true}) {
    Victim victim("firsts");
    const uint64_t expected = untraced_result("firsts", kStrangerRounds);
    const std::string pid = std::to_string(victim.pid());
    Tracer tracer = Tracer::attach(victim.pid(), kBothWays, {"--no-uprobes"});
    EXPECT_EQ(victim.run(kStrangerRounds), expected);
    if (uprobes_have_gone) {
      for (const auto& [function, address] : both_ways_functions(victim))
        Uprobe(victim.pid(), address, Uprobe::Kind::Entry, Uprobe::Where::ThisProcess).remove();
    }
    tracer.child().signal(SIGKILL);
    tracer.child().wait_for_end();
    EXPECT_EQ(victim.run(kStrangerRounds), expected) << "without a tracer";
    EXPECT_EQ(Child({.arguments = {CLEW_COMMAND, "detach", pid}}).wait_for_end().status, 0);
    expect_text_equals_file(victim.pid());
    EXPECT_EQ(victim.run(kStrangerRounds), expected);
  }
}

// Also a child that is forked while they are there.
TEST(Strangers, WhoAreNotThereLeaveTheValuesOfChildren) {
  for (const bool follows : {false, true}) {
    Victim victim("firsts");
    Tracer tracer = follows ? Tracer::attach(victim.pid(), kBothWays, {"--no-uprobes", "--follow"})
                            : Tracer::attach(victim.pid(), kBothWays, {"--no-uprobes"});
    EXPECT_EQ(victim.ask(fmt::format("fork {}", kStrangerRounds)).at("status"), 0U);
    EXPECT_EQ(victim.run(kStrangerRounds), untraced_result("firsts", kStrangerRounds));
    const Report report = tracer.finish();
    expect_values(report, kStrangerRounds, follows ? 2 : 1);
    EXPECT_EQ(report.unreadable(), 0U) << report.summary;
    expect_text_equals_file(victim.pid());
  }
}

// The kernel does the first instruction, and the probe stands behind it: exact for who does not ask
// for what it changes.
TEST(Strangers, ShareFunctionsWhoseFirstInstructionIsDoneOnce) {
  const std::string name = "firsts";
  Victim victim(name);
  const Numbers addresses = victim.ask("addresses 0");
  Tracer tracer =
      Tracer::attach(victim.pid(), R"(from e in entry("firsts!first_argument_*") group by e.function
                      select new { name = e.function, calls = count(), five = min(e.arg2) })");
  std::vector<Uprobe> probes;
  for (const auto& [function, address] : addresses)
    probes.emplace_back(victim.pid(), address, Uprobe::Kind::Entry, Uprobe::Where::ThisProcess);
  NEED_UPROBE(probes.front());
  EXPECT_EQ(victim.run(kStrangerRounds), untraced_result(name, kStrangerRounds));
  const Report report = tracer.finish();
  for (const char* function : {"first_argument_is_loaded", "first_argument_is_cut",
                               "first_argument_is_stepped", "first_argument_is_long"})
    EXPECT_EQ(report.calls()[function], kStrangerRounds) << function << report.error;
  for (const Uprobe& probe : probes)
    EXPECT_EQ(probe.hits(), kStrangerRounds);
}

TEST(Strangers, MakeNoProbeReadWhatTheFirstInstructionChangesUnlessThatIsAllowed) {
  Victim victim("firsts");
  const std::string pid = std::to_string(victim.pid());
  const std::string of_second =
      R"(from e in entry("firsts!first_argument_is_long") select sum(e.arg1))";
  const Report refused = run_clew({"run", of_second, "-p", pid, "--for", "1s", "--no-uprobes"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error,
              AllOf(HasSubstr("later-uprobe"), HasSubstr("--allow-late-uprobe-danger")));
  const std::string sums =
      R"(from e in entry("firsts!first_argument_is_*") select calls = count(), sum = sum(e.arg0))";
  // Of the four, the one that cuts arg0 is left out.
  Tracer some = Tracer::attach(victim.pid(), sums, {"--no-uprobes"});
  victim.run(kStrangerRounds);
  const Report left_out = some.finish();
  EXPECT_TRUE(left_out.refused("first_argument_is_cut", "entry")) << left_out.summary;
  constexpr uint64_t kSum = kStrangerRounds * (kStrangerRounds - 1) / 2;
  EXPECT_EQ(left_out.rows.at(0).at("calls"), 3 * kStrangerRounds);
  EXPECT_EQ(left_out.rows.at(0).at("sum"), 3 * kSum);
  Tracer all = Tracer::attach(victim.pid(), sums, {"--allow-late-uprobe-danger"});
  victim.run(kStrangerRounds);
  const Report taken = all.finish();
  EXPECT_EQ(taken.rows.at(0).at("calls"), 4 * kStrangerRounds);
  EXPECT_EQ(taken.rows.at(0).at("sum"), 4 * kSum);
}

}  // namespace
}  // namespace clew::live
