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

TEST_F(Usdt, WhatCannotBeServedBesideIsRefusedByItsKind) {
  Victim victim("usdt");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in usdt(\"clew_victim:twice\"), exception(\"usdt!tell\"), "
                                 "syscall(\"getppid\") group by e.probe select count()");
  const Report report = tracer.finish();
  const nlohmann::json& refused = report.summary.at("refused");
  ASSERT_EQ(refused.size(), 1U) << report.summary;
  EXPECT_EQ(refused[0].at("kind"), "exception");
  EXPECT_EQ(refused[0].at("reason"), "usdt");
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

// What --follow would not change is not advised.
TEST_F(Usdt, ChildrenAreTold) {
  const Report report =
      run_clew({"run", "--json", "-c", "sh -c 'ls / > /dev/null; true'",
                "from e in entry(\"libc.so.6!malloc\") group by e.ustack(2) select count()"});
  EXPECT_EQ(report.summary.at("missed").value("forks_without_uprobes", 0), 1) << report.summary;
  EXPECT_FALSE(report.summary.at("missed").contains("forks_muted"));
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

}  // namespace
}  // namespace clew::live
