// SPDX-License-Identifier: Apache-2.0
// Static probes (USDT) as sources of queries.
#include <csignal>
#include <map>
#include <sstream>

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

using testing::HasSubstr;

class Usdt : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: uprobes need root";
  }
};

TEST_F(Usdt, CountsAndArgumentsAreTheProgramsOwn) {
  constexpr int kRounds = 30;
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from t in usdt(\"clew_victim:told__all\") "
      "select new { a = t.arg0, text = str(t.arg1), b = t.arg2, c = t.arg3, d = t.arg4, "
      "t.function, t.module }");
  const uint64_t result = victim.run(kRounds);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 1U);
  const Report report = tracer.finish();
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
  EXPECT_EQ(victim.counts().at("told"), static_cast<uint64_t>(kRounds));
  EXPECT_EQ(result, untraced_result("usdt", kRounds));
  ASSERT_EQ(report.rows.size(), static_cast<size_t>(kRounds)) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  constexpr const char* kTexts[] = {"alpha", "beta", "gamma"};
  for (int i = 0; i < kRounds; ++i) {
    const nlohmann::json& row = report.rows[static_cast<size_t>(i)];
    EXPECT_EQ(row, nlohmann::json({{"a", -i},
                                   {"text", kTexts[i % 3]},
                                   {"b", -i},
                                   {"c", i},
                                   {"d", 7},
                                   {"function", "tell"},
                                   {"module", "usdt"}}));
  }
  expect_text_equals_file(victim.pid());
}

TEST_F(Usdt, EachPlaceOfANameReadsItsOwnArguments) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from t in usdt(\"clew_vic*:tw*\") group by t.function "
                                 "select new { t.function, n = count(), all = sum(t.arg0) } "
                                 "orderby n");
  victim.run(100);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 2U) << report.error;
  for (const nlohmann::json& row : report.rows) {
    const bool is_first = row.at("function") == "first_place";
    EXPECT_EQ(row.at("n"), 100U);
    EXPECT_EQ(row.at("all"), is_first ? 49500 : 49600);
  }
}

TEST_F(Usdt, DCountsTheSame) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from t in usdt(\"clew_victim:told__all\") "
                                 "group by t.arg3 & 1 as odd "
                                 "select new { odd, n = count() } orderby odd");
  Child script(
      {.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", std::to_string(victim.pid()), "-n",
                     "BEGIN { printf(\"ready\\n\"); } clew_victim$target:::told-all "
                     "{ @[arg3 & 1] = count(); } END { printa(\"%d %@d\\n\", @); }"}});
  ASSERT_EQ(script.read_line(), "ready");
  victim.run(99);
  script.signal(SIGINT);
  const std::string in_d = script.wait_for_end().output;
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 2U) << report.error;
  for (const nlohmann::json& row : report.rows) {
    EXPECT_THAT(in_d, HasSubstr(fmt::format("{} {}\n", row.at("odd").get<int64_t>(),
                                            row.at("n").get<uint64_t>())));
  }
}

TEST_F(Usdt, BesideFunctionsAndTheKernelInOneQuery) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in usdt(\"clew_victim:twice\") as \"probe\", "
                                 "entry(\"usdt!tell\") as \"function\" "
                                 "group by e.probe select new { e.probe, n = count() }");
  victim.run(50);
  const Report report = tracer.finish();
  Numbers counts;
  for (const nlohmann::json& row : report.rows)
    counts[row.at("probe")] = row.at("n").get<uint64_t>();
  EXPECT_EQ(counts, (Numbers{{"probe", 100}, {"function", 50}})) << report.error;
}

TEST_F(Usdt, BesideExceptionsWhereNoArgumentIsRead) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in usdt(\"clew_victim:twice\"), exception(\"usdt!tell\"), "
                                 "syscall(\"getppid\") select n = count()");
  victim.run(50);
  const Report report = tracer.finish();
  EXPECT_TRUE(report.summary.at("refused").empty()) << report.summary;
  EXPECT_EQ(report.rows.at(0).at("n"), 100);
  EXPECT_EQ(report.summary.at("processes"), 1);  // Of which all has one window.
}

// The kernel takes out what a tracer that is killed leaves, and counts its listener out.
TEST_F(Usdt, ATracerThatIsKilledLeavesNoListener) {
  Victim victim("usdt");
  Child tracer({.arguments = {CLEW_COMMAND, "run", "-p", std::to_string(victim.pid()),
                              "from t in usdt(\"clew_victim:told__all\") select t.arg0"}});
  while (victim.ask("listeners").at("listeners") == 0) {
  }
  tracer.signal(SIGKILL);
  tracer.wait_for_end();
  while (victim.ask("listeners").at("listeners") != 0) {
  }
  EXPECT_EQ(victim.run(10), untraced_result("usdt", 10));
  expect_text_equals_file(victim.pid());
}

// With what they are given; a library that comes back has them still.
TEST_F(Usdt, OfALibraryThatIsLoadedLaterHaveArguments) {
  Victim victim("usdt");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from t in usdt(\"clew_plugin:plugged\") group by t.function select new "
                     "{ t.function, n = count(), most = max(t.arg0) }",
                     {"--allow-missing"});
  uint64_t first = 0;  // Its probes come some milliseconds after it.
  for (bool is_there = false; !is_there;) {
    const Numbers said = victim.ask("plug 1");
    first += said.at("passed");
    is_there = said.at("listeners") != 0;
  }
  EXPECT_EQ(victim.ask("plug 1000").at("passed"), 1000U);
  victim.ask("unplug");
  EXPECT_EQ(victim.ask("plug 500").at("passed"), 500U);
  victim.ask("unplug");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("function"), "plugged");
  EXPECT_GE(report.rows[0].at("n"), 1500);
  EXPECT_LE(report.rows[0].at("n"), 1500 + first);
  EXPECT_EQ(report.rows[0].at("most"), 999);
  EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
}

TEST_F(Usdt, OfALibraryThatIsLoadedLaterWithoutTheArgumentAreTold) {
  Victim victim("usdt");
  Tracer tracer =
      Tracer::attach(victim.pid(), "from t in usdt(\"clew_plugin:plugged\") select n = t.arg3",
                     {"--allow-missing"});
  victim.ask("plug 1");
  const Report report = tracer.finish();
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("has 1 argument, and no arg3"));
}

// From their first instruction on: the probes are in the file.
TEST_F(Usdt, OfFollowedChildrenHaveArguments) {
  Victim victim("usdt");
  Tracer tracer =
      Tracer::attach(victim.pid(),
                     "from t in usdt(\"clew_guarded:passed\") group by t.pid select new "
                     "{ process = t.pid, n = count(), most = max(t.arg0) }",
                     {"--follow"});
  const auto child = victim.ask("child 40");
  EXPECT_EQ(child.at("passed"), 40U);
  EXPECT_EQ(victim.ask("end_child").at("listeners"), 1U);
  Victim other("usdt");  // Has the probes, and is not counted.
  EXPECT_EQ(other.ask("child 5").at("passed"), 5U);
  other.ask("end_child");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("n"), 40);
  EXPECT_NE(report.rows[0].at("process"), victim.pid());
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_EQ(victim.ask("child 1").at("listeners"), 0U);
  expect_text_equals_file(victim.pid());
  expect_text_equals_file(other.pid());
}

// With what would count them.
TEST_F(Usdt, ChildrenAreTold) {
  const Report report = run_clew({"run", "--json", "-c", "sh -c 'ls / > /dev/null; true'",
                                  "from e in offset(\"libc.so.6!malloc\", 0), syscall(\"getppid\") "
                                  "group by e.ustack(2) select count()"});
  EXPECT_EQ(report.summary.at("missed").value("forks_muted", 0), 1) << report.summary;
  EXPECT_FALSE(report.summary.at("missed").contains("forks_without_uprobes"));
}

TEST_F(Usdt, AreListedWithTheirPlacesAndArguments) {
  Child command({.arguments = {CLEW_COMMAND, "list", "--usdt", "--json", "clew_victim:*", "--file",
                               victim_path("usdt")}});
  const Child::End end = command.wait_for_end();
  ASSERT_EQ(end.status, 0) << end.error;
  std::istringstream text(end.output);
  std::map<std::string, nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line);
    lines[json.at("name")] = json;
  }
  ASSERT_EQ(lines.size(), 2U) << end.output;
  EXPECT_EQ(lines.at("clew_victim:twice").at("places"), 2);
  EXPECT_EQ(lines.at("clew_victim:twice").at("arguments").size(), 2U);
  EXPECT_EQ(lines.at("clew_victim:told__all").at("module"), "usdt");
}

TEST_F(Usdt, WrongNamesAndArgumentsAreErrorsWithTheirPlace) {
  Victim victim("usdt");
  const auto error_of = [&](const std::string& query) {
    return run_clew({"run", "-p", std::to_string(victim.pid()), query}).error;
  };
  EXPECT_THAT(error_of("from t in usdt(\"clew_victim:tolds\") select t.pid"),
              HasSubstr("no USDT probe 'clew_victim:tolds'; did you mean 'clew_victim:told-all'?"));
  EXPECT_THAT(error_of("from t in usdt(\"clew_victim:twice\") select t.arg1"),
              HasSubstr("clew_victim:twice of usdt has 1 argument, and no arg1"));
  EXPECT_THAT(error_of("from t in usdt(\"clew_victim\") select t.pid"),
              HasSubstr("usdt(\"provider:name\")"));
}

// --- at the nop --------------------------------------------------------------------------------

constexpr const char* kByProbe =
    "from t in usdt(\"clew_victim:*\") group by t.function select new { t.function, n = count() }";
constexpr const char* kPlugged = "from t in usdt(\"clew_plugin:plugged\") select n = count()";
constexpr const char* kGuarded =
    "from t in usdt(\"clew_guarded:passed\") group by t.pid "
    "select new { process = t.pid, n = count() }";

uint64_t sum_of(const Report& report) {
  uint64_t sum = 0;
  for (const nlohmann::json& row : report.rows)
    sum += row.at("n").get<uint64_t>();
  return sum;
}

void expect_child(const Numbers& child, uint64_t passed, uint64_t listeners) {
  EXPECT_EQ(child.at("passed"), passed);
  EXPECT_EQ(child.at("listeners"), listeners);
}

TEST(UsdtInline, CountsAreTheProgramsOwnAndNeedNoRoot) {
  ChildOptions options{
      .arguments = {victim_path("usdt")}, .folder = "/", .as_nobody = geteuid() == 0};
  Victim victim(options, Victim::Place::Started);
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer tracer = Tracer::attach(victim.pid(), kByProbe, {"--no-uprobes"}, options.as_nobody);
  const uint64_t result = victim.run(100);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 1U);
  const Report report = tracer.finish();
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
  EXPECT_EQ(result, untraced_result("usdt", 100));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  EXPECT_FALSE(report.summary.contains("uprobes")) << report.summary;
  Numbers counts;
  for (const nlohmann::json& row : report.rows)
    counts[row.at("function")] = row.at("n").get<uint64_t>();
  EXPECT_EQ(counts, (Numbers{{"tell", 100}, {"first_place", 100}, {"second_place", 100}}));
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(UsdtInline, SessionsAreCountedAsListenersEachByItself) {
  Victim victim("usdt");
  Tracer first = Tracer::attach(victim.pid(), kByProbe);
  Tracer second = Tracer::attach(victim.pid(), kByProbe);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 2U);
  victim.run(10);
  EXPECT_EQ(sum_of(first.finish()), 30U);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 1U);
  EXPECT_EQ(sum_of(second.finish()), 30U);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
}

TEST(UsdtInline, ALibraryThatIsLoadedLaterIsListenedToEachTime) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(), kPlugged, {"--allow-missing"});
  for (int i = 0; i < 5; ++i) {
    expect_child(victim.ask("plug 20"), 20, 1);
    victim.ask("unplug");
  }
  expect_child(victim.ask("plug 20"), 20, 1);
  const Report report = tracer.finish();
  expect_child(victim.ask("plug 20"), 0, 0);
  EXPECT_EQ(sum_of(report), 120U) << report.summary;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  expect_text_equals_file(victim.pid());
}

TEST(UsdtInline, AFollowedChildIsCountedAndItsListenersAreTakenBack) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(), kGuarded, {"--follow"});
  expect_child(victim.ask("child 30"), 30, 1);
  const pid_t child = only_child_of(victim.pid());
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.summary;
  EXPECT_EQ(report.rows[0], (nlohmann::json{{"process", child}, {"n", 30}}));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  expect_text_equals_file(child);
  expect_child(victim.ask("end_child"), 30, 0);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
}

TEST(UsdtInline, AChildThatIsNotFollowedHasNoListenersAfterwardsEither) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(), kGuarded);
  expect_child(victim.ask("child 30"), 30, 1);
  const Report report = tracer.finish();
  EXPECT_EQ(sum_of(report), 0U);
  EXPECT_EQ(report.summary.at("missed").value("forks_muted", 0), 1) << report.summary;
  expect_child(victim.ask("end_child"), 30, 0);
}

// Of a session that is still there, the child keeps its listener.
TEST(UsdtInline, AChildOfTwoSessionsLosesOneListenerAtATime) {
  Victim victim("usdt");
  Tracer first = Tracer::attach(victim.pid(), kGuarded, {"--follow"});
  Tracer second = Tracer::attach(victim.pid(), kGuarded, {"--follow"});
  expect_child(victim.ask("child 10"), 10, 2);
  EXPECT_EQ(sum_of(first.finish()), 10U);
  expect_child(victim.ask("end_child"), 10, 1);
  EXPECT_EQ(sum_of(second.finish()), 10U);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
}

TEST(UsdtInline, WhatAKilledTracerLeavesIsTakenBackByDetach) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(), kGuarded, {"--follow"});
  expect_child(victim.ask("child 10"), 10, 1);
  tracer.child().signal(SIGKILL);
  tracer.child().wait_for_end();
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 1U);
  for (const pid_t pid : {victim.pid(), only_child_of(victim.pid())}) {
    Child detach({.arguments = {CLEW_COMMAND, "detach", std::to_string(pid)}});
    EXPECT_EQ(detach.wait_for_end().status, 0);
  }
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
  expect_child(victim.ask("end_child"), 10, 0);
  expect_text_equals_file(victim.pid());
}

TEST_F(Usdt, AChildThatIsForkedBesideUprobesHasNoListenersAfterwards) {
  Victim victim("usdt");
  Tracer tracer =
      Tracer::attach(victim.pid(), "from t in usdt(\"clew_guarded:passed\") select n = t.arg0");
  EXPECT_EQ(victim.ask("child 30").at("passed"), 30U);
  (void)tracer.finish();
  expect_child(victim.ask("end_child"), 30, 0);
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
}

TEST_F(Usdt, WhereAJumpHasNoRoomIsAUprobe) {
  Victim victim("usdt");
  const std::string query = "from t in usdt(\"clew_narrow:begun\") select n = count()";
  Tracer tracer = Tracer::attach(victim.pid(), query);
  victim.ask("narrow 50");
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 1U);
  const Report report = tracer.finish();
  EXPECT_EQ(sum_of(report), 50U) << report.summary;
  EXPECT_EQ(report.summary.at("uprobes").at(0).at("kind"), "usdt") << report.summary;
  EXPECT_EQ(victim.ask("listeners").at("listeners"), 0U);
  EXPECT_THAT(run_clew({"run", "-p", std::to_string(victim.pid()), query, "--no-uprobes"}).error,
              HasSubstr("'begun' is refused (later-uprobe)"));
}

// The kernel replaces such a nop as a whole where somebody else has a uprobe.
TEST_F(Usdt, AtANopOfFiveBytesCountBesideOthers) {
  Victim victim("usdt");
  const std::string query = "from t in usdt(\"clew_wide:passed\") select n = count()";
  const uint64_t place = victim.ask("wide 0").at("place");
  Tracer tracer = Tracer::attach(victim.pid(), query);
  victim.ask("wide 100");
  Uprobe other(victim.pid(), place);
  NEED_UPROBE(other);
  EXPECT_EQ(victim.ask("wide 100").at("sum"), 100U * 101 / 2);
  EXPECT_EQ(other.hits(), 100U);
  other.remove();
  victim.ask("wide 100");
  const Report report = tracer.finish();
  EXPECT_EQ(sum_of(report), 300U) << report.summary;
  EXPECT_EQ(report.status, 0) << report.error;
  expect_text_equals_file(victim.pid());
}

TEST_F(Usdt, ThePlanTellsWhichWayAProbeTakes) {
  Victim victim("usdt");
  const auto explained = [&](const std::string& query) {
    Child command(
        {.arguments = {CLEW_COMMAND, "explain", "-p", std::to_string(victim.pid()), query}});
    return command.wait_for_end().output;
  };
  const std::string source = "from t in usdt(\"clew_victim:t*\") ";
  EXPECT_THAT(explained(source + "select count()"), HasSubstr("static probes: 3 inline"));
  EXPECT_THAT(explained(source + "select sum(t.arg0)"),
              HasSubstr("at uprobes: arguments of USDT probes are read by the kernel"));
  EXPECT_THAT(explained("from t in usdt(\"clew_narrow:begun\") select count()"),
              HasSubstr("by uprobe:   1  usdt later-uprobe"));
}

}  // namespace
}  // namespace clew::live
