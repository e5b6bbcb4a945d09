// SPDX-License-Identifier: Apache-2.0
// The life of a traced process and of its tracers: children, libraries that come and go, a
// debugger, several sessions, a tracer that is killed, a target that ends.
#include <csignal>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

constexpr uint64_t kLifeRounds = 1000;

std::string pid_text(const Victim& victim) {
  return std::to_string(victim.pid());
}

// Runs `clew detach` and returns its exit status.
int detach(const Victim& victim) {
  Child child({.arguments = {CLEW_COMMAND, "detach", pid_text(victim)}});
  return child.wait_for_end().status;
}

TEST(Life, ForkedChildrenAreUnharmedAndNotCounted) {
  Victim victim("forks");
  const Traced traced = trace_rounds(victim, "forks", entries_of("forks!*"), 3);
  expect_exact(traced, "entry");
}

TEST(Life, FollowedChildrenAreCountedApart) {
  Victim victim("forks");
  const uint64_t expected = untraced_result("forks", 3);
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in entry(\"forks!traced_work\") group by e.pid select new "
                                 "{ process = e.pid, calls = count() }",
                                 {"--follow"});
  EXPECT_EQ(victim.run(3), expected);
  const uint64_t parent_calls = victim.counts().at("traced_work");
  const uint64_t children_calls = victim.ask("children").at("children_work");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  uint64_t by_parent = 0;
  uint64_t by_others = 0;
  for (const nlohmann::json& row : report.rows) {
    EXPECT_NE(row.at("process").get<int64_t>(), 0) << "a child that has ended has no pid";
    const bool own = row.at("process").get<int64_t>() == victim.pid();
    (own ? by_parent : by_others) += row.at("calls").get<uint64_t>();
  }
  EXPECT_EQ(by_parent, parent_calls);
  EXPECT_EQ(by_others + report.lost(), children_calls) << report.summary;
}

// In one session, one after the other.
TEST(Life, AnyNumberOfChildrenIsFollowed) {
  constexpr int64_t kForkRounds = 8;  // Of 16 forks.
  Victim victim("forks");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from e in entry(\"forks!traced_work\") group by e.pid, e.procName "
                     "select new { process = e.pid, name = e.procName, calls = count() }",
                     {"--follow"});
  victim.run(kForkRounds);
  const uint64_t children_calls = victim.ask("children").at("children_work");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(static_cast<int64_t>(report.rows.size()), 1 + 16 * kForkRounds);
  uint64_t by_children = 0;
  for (const nlohmann::json& row : report.rows) {
    EXPECT_EQ(row.at("name"), "forks") << "what it was when it made the calls";
    if (row.at("process") != victim.pid()) by_children += row.at("calls").get<uint64_t>();
  }
  EXPECT_EQ(by_children, children_calls) << report.summary;
  EXPECT_FALSE(report.summary.at("missed").contains("forks_muted")) << report.summary;
}

TEST(Life, ChildrenOfChildrenAreFollowedHoweverDeep) {
  constexpr size_t kDepth = 100;
  Victim victim("forks");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in entry(\"forks!traced_work\") group by e.pid select new "
                                 "{ process = e.pid, calls = count() }",
                                 {"--follow"});
  const Numbers done = victim.ask("chain " + std::to_string(kDepth));
  EXPECT_EQ(done.at("children_work"), 10 * kDepth);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.size(), kDepth);
  for (const nlohmann::json& row : report.rows)
    EXPECT_EQ(row.at("calls"), 10) << row;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

// begun_test.cc has those that match.
TEST(Life, ProgramsOfFollowedChildrenThatMatchNothingAreNoLoss) {
  Victim victim("forks");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("forks!traced_work"), {"--follow"});
  victim.run(1);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  const std::string lost = report.summary.at("lost").dump();
  if (geteuid() == 0) {
    EXPECT_EQ(lost, "[]");
  } else {
    EXPECT_THAT(lost, HasSubstr("are not traced; how many, the kernel tells root"));
  }
}

// Times since boot are others there, by which a tracer's pid is told from a later process's.
TEST(Life, ATracerInAnotherTimeNamespaceIsAlive) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: making a time namespace needs root";
  Victim victim("sites");
  Tracer tracer = Tracer::attach(victim.pid(), "from e in entry(\"sites!*\") select n = count()");
  Child detach({.arguments = {"/usr/bin/unshare", "--time", "--boottime", "100000", "--fork",
                              CLEW_COMMAND, "detach", pid_text(victim)}});
  (void)detach.wait_for_end();
  victim.run(100);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_GT(report.rows.at(0).at("n"), 0) << "the session was taken for a dead one's";
  EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
}

TEST(Life, AProcessLivesOnWithoutItsFirstThread) {
  Victim victim("leaderless");
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in entry("leaderless!carry_on")
                                                  select calls = count())");
  victim.run(100);
  const auto tid = static_cast<pid_t>(victim.ask("leave").at("tid"));
  victim.run(200);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("calls").get<uint64_t>(), 300U);
  EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
  expect_text_equals_file(tid);
  victim.run(10);
}

TEST(Life, AProcessWithoutItsFirstThreadIsTracedByItsPid) {
  Victim victim("leaderless");
  const auto tid = static_cast<pid_t>(victim.ask("leave").at("tid"));
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in entry("leaderless!carry_on")
                                                  group by e.pid select new {
                                                  process = e.pid, calls = count() })");
  victim.run(200);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("calls").get<uint64_t>(), 200U);
  EXPECT_EQ(report.rows[0].at("process").get<int64_t>(), victim.pid());
  EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
  expect_text_equals_file(tid);
  victim.run(10);
}

constexpr unsigned kPidfdThread = O_EXCL;

Child count_by_script(const Victim& victim, const std::string& option) {
  return Child({.arguments = {CLEW_COMMAND, "dtrace", "-q", option, "-p", pid_text(victim), "-n",
                              "BEGIN { printf(\"armed\\n\"); }"
                              "pid$target::carry_on:entry { @ = count(); }"
                              "END { printa(\"%@d\\n\", @); }"}});
}

TEST(Life, AScriptTracesAProcessWithoutItsFirstThread) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  Victim victim("leaderless");
  const auto tid = static_cast<pid_t>(victim.ask("leave").at("tid"));
  const FileDescriptor thread(static_cast<int>(syscall(SYS_pidfd_open, tid, kPidfdThread)));
  if (!thread.valid()) GTEST_SKIP() << "NOT TESTED: descriptors of a thread need Linux 6.9";
  Child script = count_by_script(victim, "-q");
  ASSERT_EQ(script.read_line(), "armed") << script.wait_for_end().error;
  victim.run(200);
  script.signal(SIGINT);
  const Child::End end = script.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, testing::HasSubstr("200\n")) << end.error;
  expect_text_equals_file(tid);
  victim.run(10);
}

// They would be set nowhere, and count nothing.
TEST(Life, UprobesOfAProcessWithoutItsFirstThreadAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: uprobes need root";
  Victim victim("leaderless");
  victim.ask("leave");
  const Child::End end = count_by_script(victim, "-xuseruprobes").wait_for_end();
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, testing::HasSubstr("its first thread has ended"));
}

TEST(Life, ADeadTracersProbesAreRemovedWithoutTheFirstThread) {
  Victim victim("leaderless");
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in entry("leaderless!carry_on")
                                                  select calls = count())");
  const auto tid = static_cast<pid_t>(victim.ask("leave").at("tid"));
  tracer.child().signal(SIGKILL);
  tracer.child().wait_for_end();
  victim.run(100);
  EXPECT_EQ(detach(victim), 0);
  expect_text_equals_file(tid);
  victim.run(10);
}

// Each call is answered before the next one is asked for, so their order is known.
TEST(Life, EventsOfTwoProcessesComeInOneOrder) {
  constexpr uint64_t kCalls = 300;
  Victim first("keys");
  Victim second("keys");
  Tracer tracer = Tracer::attach(
      first.pid(), "from k in entry(\"keys!take_key\") select new { key = k.arg0, k.pid }",
      {"-p", pid_text(second)});
  for (uint64_t key = 0; key < kCalls; ++key) {
    (key % 2 == 0 ? first : second).ask("one " + std::to_string(key));
  }
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), kCalls) << report.error;
  for (uint64_t key = 0; key < kCalls; ++key) {
    ASSERT_EQ(report.rows[key].at("key"), key);
    ASSERT_EQ(report.rows[key].at("pid"), (key % 2 == 0 ? first : second).pid());
  }
}

// A thousand times: each load is waited for by the loader, so the victim answers in between.
TEST(Life, ALibraryIsTracedEachTimeItIsLoaded) {
  constexpr uint64_t kLoads = 50;
  Victim victim("plugins");
  const uint64_t expected = untraced_result("plugins", kLoads);
  Tracer tracer =
      Tracer::attach(victim.pid(), entries_of("libplugin_a.so!plugin_*"), {"--allow-missing"});
  for (uint64_t done = 0; done < 1000; done += kLoads) {
    ASSERT_EQ(victim.run(kLoads), expected);
  }
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_GT(truth.at("same_address"), 0U) << "the case needs both libraries at one address";
  EXPECT_EQ(report.calls()["plugin_work"], truth.at("plugin_work"));
  EXPECT_EQ(report.calls()["plugin_constructor"], truth.at("plugin_constructor"));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_EQ(victim.run(kLoads), expected);
  expect_text_equals_file(victim.pid());
}

// The loader waits for a tracer no longer than for a dead one. What is closed before its probes are
// there is lost, and nobody's patch.
// The value of a line of /proc/PID/status.
std::string status_of(pid_t pid, const std::string& name) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

// Stops the tracer at a moment at which it does not hold the victim, which would stand still as
// long.
void stop_beside(Child& tracer, pid_t victim) {
  for (;;) {
    tracer.signal(SIGSTOP);
    while (!status_of(tracer.pid(), "State").starts_with('T')) {
    }
    if (status_of(victim, "TracerPid") == "0") return;
    tracer.signal(SIGCONT);
  }
}

TEST(Life, ALibraryThatIsClosedUnderALateTracerIsTold) {
  constexpr uint64_t kLoads = 20;
  Victim victim("plugins");
  const uint64_t expected = untraced_result("plugins", kLoads);
  Tracer tracer =
      Tracer::attach(victim.pid(), entries_of("libplugin_a.so!plugin_*"), {"--allow-missing"});
  for (int i = 0; i < 10; ++i) {
    stop_beside(tracer.child(), victim.pid());
    ASSERT_EQ(victim.run(kLoads), expected);
    victim.tell("run " + std::to_string(kLoads));
    tracer.child().signal(SIGCONT);
    ASSERT_EQ(victim.answer().at("errors"), 0U);
  }
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_TRUE(report.summary.at("refused").empty()) << report.summary;
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("went on before new modules of it"));
  EXPECT_LE(report.calls()["plugin_work"], truth.at("plugin_work"));
  EXPECT_EQ(victim.run(kLoads), expected);
  expect_text_equals_file(victim.pid());
}

TEST(Life, TwoSessionsFollowOneLibrary) {
  constexpr uint64_t kLoads = 50;
  Victim victim("plugins");
  const uint64_t expected = untraced_result("plugins", kLoads);
  const auto attach = [&] {
    return Tracer::attach(victim.pid(), entries_of("libplugin_a.so!plugin_*"), {"--allow-missing"});
  };
  Tracer first = attach();
  Tracer second = attach();
  ASSERT_EQ(victim.run(kLoads), expected);
  for (Tracer* tracer : {&first, &second}) {
    Report report = tracer->finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.calls()["plugin_work"], kLoads) << report.summary;
    EXPECT_EQ(report.lost(), 0U) << report.summary;
  }
  EXPECT_EQ(victim.run(kLoads), expected);
  expect_text_equals_file(victim.pid());
}

TEST(Life, TwoSessionsCountTheirOwnAndLeaveInAnyOrder) {
  for (const bool first_leaves_first : {true, false}) {
    Victim victim("sites");
    const uint64_t expected = untraced_result("sites", kLifeRounds);
    const ProcessState before = ProcessState::of(victim.pid());
    Tracer first = Tracer::attach(victim.pid(), entries_of("sites!rip_*"));
    EXPECT_EQ(victim.run(kLifeRounds), expected);
    Tracer second = Tracer::attach(victim.pid(), entries_of("sites!rip_lea"));
    EXPECT_EQ(victim.run(kLifeRounds), expected);
    Report early = (first_leaves_first ? first : second).finish();
    EXPECT_EQ(victim.run(kLifeRounds), expected);
    Report late = (first_leaves_first ? second : first).finish();
    EXPECT_EQ(early.calls()["rip_lea"], (first_leaves_first ? 2 : 1) * kLifeRounds) << early.error;
    EXPECT_EQ(late.calls()["rip_lea"], (first_leaves_first ? 2 : 3) * kLifeRounds) << late.error;
    EXPECT_EQ(victim.run(kLifeRounds), expected);
    expect_text_equals_file(victim.pid());
    expect_no_residue(before, victim.pid());
  }
}

Child start_debugger(const std::vector<std::string>& commands, const std::string& pid) {
  std::vector<std::string> arguments = {"gdb", "-q", "-nx", "-batch", "-p", pid};
  for (const std::string& command : commands) {
    arguments.emplace_back("-ex");
    arguments.push_back(command);
  }
  return Child({.arguments = arguments, .environment = {"DEBUGINFOD_URLS="}});
}

bool have_debugger() {
  return access("/usr/bin/gdb", X_OK) == 0;
}

TEST(Life, ABreakpointInATracedFunctionHitsAndCountsStayRight) {
  ASSERT_TRUE(have_debugger()) << "no gdb";
  Victim victim("sites");
  const uint64_t expected = untraced_result("sites", kLifeRounds);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("sites!rip_*"));
  // The debugger stops once at the traced function's first byte, which is now Clew's jump.
  Child debugger =
      start_debugger({"break *rip_lea", "printf \"set\\n\"", "continue",
                      "printf \"at %d\\n\", $pc == (long)&rip_lea", "delete", "detach"},
                     pid_text(victim));
  for (auto line = debugger.read_line(); line && *line != "set"; line = debugger.read_line()) {
  }
  EXPECT_EQ(victim.run(kLifeRounds), expected);
  EXPECT_THAT(debugger.wait_for_end().output, HasSubstr("at 1"));
  const Report report = tracer.finish();
  EXPECT_EQ(report.calls()["rip_lea"], kLifeRounds) << report.error;
  EXPECT_EQ(victim.run(kLifeRounds), expected);
  expect_text_equals_file(victim.pid());
}

TEST(Life, AProcessUnderADebuggerIsRefusedAndUnchanged) {
  ASSERT_TRUE(have_debugger()) << "no gdb";
  Victim victim("sites");
  const uint64_t expected = untraced_result("sites", kLifeRounds);
  Child debugger = start_debugger(
      {"break *rip_lea", "printf \"set\\n\"", "continue", "delete", "detach"}, pid_text(victim));
  for (auto line = debugger.read_line(); line && *line != "set"; line = debugger.read_line()) {
  }
  const Report report = run_clew({"run", entries_of("sites!rip_*"), "-p", pid_text(victim)});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("error:"));
  EXPECT_EQ(victim.run(kLifeRounds), expected);
  debugger.wait_for_end();
  expect_text_equals_file(victim.pid());
}

TEST(Life, AfterTheTracerIsKilledTheTargetGoesOnAndIsCleanedUp) {
  Victim victim("sites");
  const uint64_t expected = untraced_result("sites", kLifeRounds);
  const ProcessState before = ProcessState::of(victim.pid());
  {
    Tracer tracer = Tracer::attach(victim.pid(), entries_of("sites!*"));
    EXPECT_EQ(victim.run(kLifeRounds), expected);
    tracer.child().signal(SIGKILL);
    tracer.child().wait_for_end();
  }
  EXPECT_EQ(victim.run(kLifeRounds), expected);
  Child listing({.arguments = {CLEW_COMMAND, "ps"}});
  EXPECT_THAT(listing.wait_for_end().output, HasSubstr(pid_text(victim)));
  EXPECT_EQ(detach(victim), 0);
  EXPECT_EQ(victim.run(kLifeRounds), expected);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

// Killed at whatever point it has reached: attaching, arming, counting, detaching.
TEST(Life, ATracerMayBeKilledAtAnyMoment) {
  Victim victim("sites");
  const uint64_t expected = untraced_result("sites", kLifeRounds);
  const ProcessState before = ProcessState::of(victim.pid());
  for (int rounds_before_kill = 0; rounds_before_kill < 40; ++rounds_before_kill) {
    Child tracer(
        {.arguments = {CLEW_COMMAND, "run", entries_of("sites!*"), "-p", pid_text(victim)}});
    // A growing amount of work of our own is the clock: no time is waited for.
    for (int i = 0; i < rounds_before_kill; ++i) {
      EXPECT_EQ(victim.run(kLifeRounds), expected);
    }
    tracer.signal(SIGKILL);
    tracer.wait_for_end();
    EXPECT_EQ(victim.run(kLifeRounds), expected);
  }
  detach(victim);
  EXPECT_EQ(victim.run(kLifeRounds), expected);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Life, TheNextSessionRemovesWhatAKilledOneLeft) {
  Victim victim("sites");
  const ProcessState before = ProcessState::of(victim.pid());
  {
    Tracer tracer = Tracer::attach(victim.pid(), entries_of("sites!*"));
    tracer.child().signal(SIGKILL);
    tracer.child().wait_for_end();
  }
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("sites!rip_*"));
  EXPECT_EQ(victim.run(kLifeRounds), untraced_result("sites", kLifeRounds));
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls()["rip_lea"], kLifeRounds);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Life, WhatWasCountedSurvivesTheTarget) {
  for (const bool killed : {true, false}) {
    Victim victim("sites");
    Tracer tracer = Tracer::attach(victim.pid(), entries_of("sites!rip_*"));
    victim.run(kLifeRounds);
    if (killed) {
      victim.child().signal(SIGKILL);
    } else {
      victim.tell("exit");
    }
    victim.child().wait_for_end();
    const Report report = tracer.wait();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.calls()["rip_lea"], kLifeRounds);
    EXPECT_FALSE(report.error.empty()) << "the end of the target is worth a word";
  }
}

TEST(Life, ACommandIsTracedFromItsStart) {
  Child tracer({.arguments = {CLEW_COMMAND, "run", entries_of("sites!rip_*"), "--json", "-c",
                              victim_path("sites")}});
  tracer.write_line("run 10");
  tracer.write_line("exit");
  tracer.close_input();
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr("\"rip_lea\""));
}

TEST(Life, AttachingAndDetachingAgainAndAgainChangesNothing) {
  Victim victim("returns");
  const uint64_t expected = untraced_result("returns", 100'000);
  const ProcessState before = ProcessState::of(victim.pid());
  victim.tell("run 100000");
  for (int i = 0; i < 10; ++i) {
    const Report report = Tracer::attach(victim.pid(), entries_of("returns!*")).finish();
    EXPECT_EQ(report.status, 0) << report.error;
  }
  const Numbers answer = victim.answer();
  EXPECT_EQ(answer.at("result"), expected);
  EXPECT_EQ(answer.at("errors"), 0U);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

}  // namespace
}  // namespace clew::live
