// SPDX-License-Identifier: Apache-2.0
// Programs that followed processes begin by exec.
#include <chrono>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "live/slow_file.h"
#include "live/tracer.h"

namespace clew::live {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kByProcess =
    "from e in entry(\"begun!begun_work\") group by e.pid, e.procName "
    "select new { process = e.pid, name = e.procName, calls = count() } orderby calls";

// Until the process has waited and gone on so often since now. False when it does not.
constexpr uint64_t kTurns = 20;

uint64_t turns_of(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  const std::string name = "voluntary_ctxt_switches:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoull(line.substr(name.size()));
  }
  return 0;
}

bool wait_for_turns(pid_t pid) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const uint64_t begin = turns_of(pid);
  while (turns_of(pid) < begin + kTurns) {
    if (std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
  return true;
}

class Begun : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0)
      GTEST_SKIP() << "NOT TESTED: the kernel tells of others' programs root only";
  }

  // `script` is a shell's; its BEGUN is the victim.
  static Report follow(std::string script, const std::string& query = kByProcess) {
    const std::string word = "BEGUN";
    for (size_t at = script.find(word); at != std::string::npos; at = script.find(word, at))
      script.replace(at, word.size(), victim_path("begun"));
    return run_clew({"run", "--json", "--follow", "--allow-missing", "-c",
                     fmt::format("sh -c '{}'", script), query});
  }

  static std::vector<uint64_t> calls_of(const Report& report) {
    std::vector<uint64_t> calls;
    for (const nlohmann::json& row : report.rows) {
      EXPECT_EQ(row.at("name"), "begun");
      calls.push_back(row.at("calls").get<uint64_t>());
    }
    return calls;
  }
};

TEST_F(Begun, AProgramThatAChildBeginsIsTraced) {
  const Report report = follow("BEGUN 100 && true");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls_of(report), std::vector<uint64_t>{100});
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("1 program that processes began"));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST_F(Begun, AProgramThatTheTracedProcessItselfBeginsIsTraced) {
  const Report report = follow("exec BEGUN 50");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls_of(report), std::vector<uint64_t>{50});
  EXPECT_THAT(report.summary.at("lost").dump(), Not(HasSubstr("runs another program")));
}

TEST_F(Begun, ChainsAndSeveralAtOnceAreTraced) {
  const Report report = follow(
      "BEGUN 1 & BEGUN 2 & BEGUN 3 & sh -c \"sh -c \\\"BEGUN 4; true\\\"; BEGUN 5\" & wait; "
      "sh -c \"exec BEGUN 6\"");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls_of(report), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6})) << report.error;
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("6 programs that processes began"));
}

// Those that end before anybody looks are counted, if their names could be meant.
TEST_F(Begun, ProgramsThatMatchNothingAreNoLoss) {
  const Report report = follow("true; ls > /dev/null; sh -c \"true; true\"; true");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_TRUE(report.rows.empty());
  const nlohmann::json lost = {
      R"(entry("begun!begun_work") matched nothing in any program that was traced)"};
  EXPECT_EQ(report.summary.at("lost"), lost);
}

TEST_F(Begun, AModuleOfAChildAloneIsWaitedForOnRequest) {
  const auto refusal = [](std::vector<std::string> arguments, const std::string& query) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"-c", "sh -c true", query});
    const Report report = run_clew(arguments);
    EXPECT_EQ(report.status, 1);
    return report.error;
  };
  EXPECT_THAT(refusal({"--follow"}, kByProcess),
              testing::ContainsRegex("no module 'begun' in process [0-9]+; --allow-missing waits "
                                     "for a program that has it"));
  EXPECT_THAT(refusal({}, kByProcess), HasSubstr("; --allow-missing waits until it is loaded"));
  EXPECT_THAT(refusal({}, "from e in entry(\"libc.so.6!forkk\") select count()"),
              Not(HasSubstr("--allow-missing")));
}

TEST_F(Begun, ProgramsThatEndAtOnceAreToldOrCounted) {
  const Report report = follow("for i in 1 2 3 4 5 6 7 8 9 10; do BEGUN 1 --; done; true",
                               "from e in entry(\"begun!begun_work\") select calls = count()");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("that processes began by exec"));
  EXPECT_EQ(report.summary.at("refused").dump(), "[]");
}

// The kernel tells of an exec before it is done; here it waits for the last page of the program's
// data meanwhile.
TEST_F(Begun, AnExecThatTakesLongIsNoEnd) {
  const std::string begun = victim_path("begun");
  SlowFile slow(begun, end_of_data(begun));
  if (!slow.is_there()) GTEST_SKIP() << "NOT TESTED: no FUSE for us on this machine";
  Child tracer({.arguments = {CLEW_COMMAND, "run", "--json", "--follow", "--allow-missing", "-c",
                              fmt::format("sh -c '{} 70 && true'", slow.path()),
                              "from e in entry(\"slow!begun_work\") select calls = count()"}});
  ASSERT_TRUE(slow.wait_until_held());
  ASSERT_TRUE(wait_for_turns(tracer.pid()));
  slow.release();
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr("{\"calls\":70}"));
}

// Its semaphore is raised before its jumps are there.
TEST_F(Begun, AStaticProbeOfAProgramThatAChildBeginsIsListenedTo) {
  const Report report = follow("BEGUN 100 && exec BEGUN 40",
                               "from t in usdt(\"clew_begun:told\") group by t.pid, t.procName "
                               "select new { name = t.procName, calls = count() } orderby calls");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls_of(report), (std::vector<uint64_t>{40, 100})) << report.summary;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST_F(Begun, AProgramThatHasNotLoadedAsTheSessionEndsIsTold) {
  const Report report =
      follow("exec BEGUN held", "from e in entry(\"libc.so.6!fork\") select calls = count()");
  ASSERT_EQ(report.status, 0) << report.error;
  int programs = 0;  // Two, whatever became of them.
  for (const auto& sentence : report.summary.at("lost")) {
    const std::string text = sentence.get<std::string>();
    if (text.find("that processes began by exec") != std::string::npos) programs += std::stoi(text);
  }
  EXPECT_EQ(programs, 2) << report.summary;
}

}  // namespace
}  // namespace clew::live
