// SPDX-License-Identifier: Apache-2.0
// Stacks that probes in processes walk themselves: where they begin, what comes and goes meanwhile,
// and that they need no root. That they are the chains of calls that there are is in
// stacks_test.cc.
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/child.h"
#include "live/thread_begins.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using Frames = std::vector<std::string>;

Frames symbols_of(const nlohmann::json& stack) {
  Frames names;
  for (const nlohmann::json& frame : stack)
    names.push_back(frame.value("symbol", ""));
  return names;
}

bool is_begin(const std::string& frame) {
  return frame == "_start" || frame == "clone" || frame == "clone3" ||
         begins_of_threads().contains(frame);
}

TEST(StacksInProcesses, AtReturnsBeginWithTheCaller) {
  const Report report =
      run_clew({"run", "--json", "-c", victim_path("stacks_pie"),
                "from f in return(\"stacks_pie!leaf\") select new { stack = f.ustack(3) } take 2"});
  ASSERT_EQ(report.rows.size(), 2U) << report.error;
  EXPECT_THAT(symbols_of(report.rows[0].at("stack")), ElementsAre("recurse", "recurse", "recurse"));
  EXPECT_EQ(symbols_of(report.rows[1].at("stack"))[0], "compare");
}

// The calls are in a library that is loaded, and loaded again, while the session runs.
TEST(StacksInProcesses, OfLibrariesThatComeLaterAreWhole) {
  constexpr uint64_t kRounds = 5;
  Victim victim("plugins");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from f in entry(\"libplugin_a.so!plugin_work\") group by f.ustack "
                     "select new { stack = f.ustack, calls = count() }",
                     {"--allow-missing"});
  victim.run(kRounds);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  uint64_t calls = 0;
  for (const nlohmann::json& row : report.rows) {
    const Frames names = symbols_of(row.at("stack"));
    EXPECT_EQ(names.at(0), "plugin_work");
    EXPECT_THAT(names, testing::IsSupersetOf({"victim_run", "main"}));
    calls += row.at("calls").get<uint64_t>();
  }
  EXPECT_EQ(calls + report.lost(), kRounds) << report.summary;
}

TEST(StacksInProcesses, OfFollowedChildrenHaveNamesWhenTheyAreGone) {
  Victim victim("forks");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from f in entry(\"forks!traced_work\") group by f.ustack select "
                                 "new { stack = f.ustack, calls "
                                 "= count() }",
                                 {"--follow"});
  victim.run(2);
  const uint64_t expected =
      victim.counts().at("traced_work") + victim.ask("children").at("children_work");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  uint64_t calls = 0;
  for (const nlohmann::json& row : report.rows) {
    const Frames names = symbols_of(row.at("stack"));
    EXPECT_EQ(names.at(0), "traced_work");
    EXPECT_THAT(names, testing::Not(Contains("")));
    EXPECT_TRUE(is_begin(names.back())) << names.back();
    calls += row.at("calls").get<uint64_t>();
  }
  EXPECT_EQ(calls + report.lost(), expected) << report.summary;
}

TEST(StacksInProcesses, OfGeneratedCodeHaveTheNamesOfItsMap) {
  Victim victim("generated");
  victim.ask("make 1");
  Child tracer({.arguments = {CLEW_COMMAND, "run", "--json", "-p", std::to_string(victim.pid()),
                              "from f in entry(\"generated!at_leaf\") select new { stack = "
                              "f.ustack(4) }"}});
  ASSERT_THAT(tracer.read_error_line().value_or(""), testing::HasSubstr("tracing"));
  const auto next = [&] {
    victim.run(1);
    return symbols_of(nlohmann::json::parse(tracer.read_line().value_or("null")).at("stack"));
  };
  Frames names = next();
  names.resize(3);  // Behind them is what was inlined.
  EXPECT_THAT(names, ElementsAre("at_leaf", "made_1", "victim_run"));
  victim.ask("make 2");
  do {
    names = next();
  } while (names.at(2).empty());
  names.resize(4);
  EXPECT_THAT(names, ElementsAre("at_leaf", "made_1", "made_2", "victim_run"));
  tracer.signal(SIGINT);
  tracer.wait_for_end();
  victim.tell("exit");
  victim.child().wait_for_end();
}

TEST(StacksInProcesses, NeedNoRoot) {
  const Report report =
      run_clew({"run", "--json", "-c", victim_path("stacks_pie"),
                "from f in entry(\"stacks_pie!leaf\") select new { stack = f.ustack } take 1"},
               true);
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_THAT(symbols_of(report.rows[0].at("stack")), testing::IsSupersetOf({"leaf", "main"}));
}

// With a handler of a signal among them, and calls that were inlined.
TEST(StacksInProcesses, OfAFileAreThoseOfItsProcess) {
  const std::string folder = testing::TempDir();
  const std::string file = folder + "/stacks.events";
  const std::string events = "from f in entry(\"stacks_pie!leaf\") select new { stack = f.ustack }";
  const Report recorded =
      run_clew({"run", "--json", "--spill", file, "-c", victim_path("stacks_pie"), events});
  ASSERT_GT(recorded.rows.size(), 10U) << recorded.error;
  const Report replayed = run_clew({"run", "--json", "--from", file, events});
  EXPECT_EQ(replayed.rows, recorded.rows) << replayed.error;
  const Report grouped = run_clew({"run", "--json", "--from", file,
                                   "from f in entry(\"stacks_pie!leaf\") group by f.ustack select "
                                   "new { stack = f.ustack, calls = count() }"});
  ASSERT_EQ(grouped.status, 0) << grouped.error;
  std::map<nlohmann::json, uint64_t> expected;
  for (const nlohmann::json& row : recorded.rows)
    ++expected[row.at("stack")];
  std::map<nlohmann::json, uint64_t> counted;
  for (const nlohmann::json& row : grouped.rows)
    counted[row.at("stack")] = row.at("calls");
  EXPECT_EQ(counted, expected);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace clew::live
