// SPDX-License-Identifier: Apache-2.0
// Joins by cause that are answered where their events happen (--plan in-place): they give what the
// same query gives from events, and what the victims know.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kInPlace = {"--plan", "in-place"};

// Work by whether its request is the one that was joined.
constexpr const char* kByRequest =
    "from w in entry(\"causes!work\") join r in First(entry(\"causes!receive\")) on r -> w "
    "select new { name = r.arg0 == w.arg0 ? \"right\" : \"wrong\", calls = count() }";

std::vector<std::string> sorted_rows(const Report& report) {
  std::vector<std::string> rows;
  for (const nlohmann::json& row : report.rows)
    rows.push_back(row.dump());
  std::sort(rows.begin(), rows.end());
  return rows;
}

struct Both {
  Report placed;
  Report all;
};

// What both plans say of `seeds` runs of the victim `graphs`, as they see the same.
Both watch_both(const std::string& query, const std::string& command, uint64_t seeds) {
  constexpr uint64_t kAtOnce = 25;  // So that the rings of the one plan do not run over.
  Victim victim("graphs");
  victim.ask("random 1");
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer emitted = Tracer::attach(victim.pid(), query);
  Tracer in_place = Tracer::attach(victim.pid(), query, kInPlace);
  for (uint64_t done = 0; done < seeds; done += kAtOnce)
    victim.ask(command + " " + std::to_string(kAtOnce));
  Both both{.placed = in_place.finish(), .all = emitted.finish()};
  EXPECT_EQ(both.placed.status, 0) << both.placed.error;
  EXPECT_EQ(both.all.status, 0) << both.all.error;
  EXPECT_EQ(both.all.summary.value("dropped", nlohmann::json::object()), nlohmann::json::object());
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
  return both;
}

void expect_same(const std::string& query, uint64_t seeds, const std::string& command = "random") {
  const Both both = watch_both(query, command, seeds);
  ASSERT_FALSE(testing::Test::HasFailure());
  const auto& [placed, all] = both;
  EXPECT_EQ(sorted_rows(placed), sorted_rows(all));
  EXPECT_GT(placed.rows.size(), 5U);
  const auto& causes = placed.summary.at("by_cause");
  EXPECT_EQ(causes.at("requests"), all.summary.at("by_cause").at("requests"));
  EXPECT_EQ(causes.value("unjoined", 0), all.summary.at("by_cause").value("unjoined", 0));
  const auto missed = [](const Report& report, const char* why) {
    return report.summary.value("missed", nlohmann::json::object()).value(why, 0);
  };
  EXPECT_EQ(missed(placed, "no_request"), missed(all, "no_request"));
}

TEST(InPlace, EachRowIsThatOfThePlanOfEvents) {
  expect_same(
      "from w in entry(\"graphs!work\") join a in First(entry(\"graphs!arrive\")) on a -> w "
      "select new { w = w.arg0, a = a.arg0 }",
      100);
  expect_same(
      "from w in entry(\"graphs!work\") join a in MostRecent(entry(\"graphs!note\")) on a "
      "-> w select new { w = w.arg0, a = a.arg0 }",
      100);
}

TEST(InPlace, GroupsOfSeveralJoinsAreThoseOfThePlanOfEvents) {
  expect_same(
      "from w in entry(\"graphs!work\") join a in First(entry(\"graphs!arrive\")) on a -> w "
      "join n in MostRecent(entry(\"graphs!note\")) on n -> w where n.arg0 % 3 != 0 && "
      "w.arg0 > a.arg0 groupby w.arg1 % 20 as seed select seed, count() as n, "
      "max(w.arg0 - a.arg0) as most, sum(n.arg0) as sum",
      200);
}

TEST(InPlace, ChainsAreThoseOfThePlanOfEvents) {
  expect_same(
      "from w in entry(\"graphs!work\") join n in MostRecent(entry(\"graphs!note\")) on n -> "
      "w join a in First(entry(\"graphs!arrive\")) on a -> n where n.arg0 % 5 != 0 select new "
      "{ w = w.arg0, n = n.arg0, a = a.arg0 }",
      150);
  expect_same(
      "from w in entry(\"graphs!work\") join n in First(entry(\"graphs!note\")) on n -> w "
      "join a in MostRecent(entry(\"graphs!arrive\")) on a -> n groupby w.arg1 % 7 as s "
      "select s, count(), sum(n.arg0 - a.arg0) as d",
      150);
}

// What is counted of all that happened before, by each event of work.
constexpr const char* kSums =
    "from w in entry(\"graphs!work\") join n in entry(\"graphs!note\") on n -> w where n.arg0 % 4 "
    "!= 0 groupby w.arg0 as work select work, count() as n, sum(n.arg0) as sum, min(n.arg0) as "
    "least, max(n.arg0) as most, avg(n.arg0 - 1000) as mean";

TEST(InPlace, SumsOfAllThatHappenedBeforeAreThoseOfThePlanOfEvents) {
  expect_same(kSums, 150, "trees");
  // Independent of each other, beside a first one, and of an event that is joined itself.
  expect_same(
      "from w in entry(\"graphs!work\") join n in entry(\"graphs!note\") on n -> w "
      "join a in entry(\"graphs!arrive\") on a -> w groupby w.arg1 % 9 as s "
      "select s, count() as n, sum(n.arg0) as notes, sum(a.arg0) as arrivals, sum(w.arg0) as works",
      150, "trees");
  expect_same(
      "from w in entry(\"graphs!work\") join n in First(entry(\"graphs!note\")) on n -> w "
      "join a in entry(\"graphs!arrive\") on a -> n groupby w.arg1 % 9 as s "
      "select s, count() as n, sum(n.arg0) as notes, max(a.arg0) as arrivals, avg(w.arg0) as works",
      150, "trees");
  // As somebody writes it.
  expect_same(
      "var notes = from n in entry(\"graphs!note\") select count() as n, sum(n.arg0) as sum; "
      "from w in entry(\"graphs!work\") join q in notes on q -> w "
      "select new { w = w.arg0, q.n, q.sum }",
      100, "trees");
}

// Where parts of a request come together that may have counted the same, nothing is known.
TEST(InPlace, SumsOfWhatComesTogetherAreRightOrUnknown) {
  const Both both = watch_both(kSums, "random", 150);
  const std::vector<std::string> placed = sorted_rows(both.placed);
  const std::vector<std::string> all = sorted_rows(both.all);
  EXPECT_TRUE(std::includes(all.begin(), all.end(), placed.begin(), placed.end()));
  EXPECT_GT(placed.size(), all.size() / 2);
  EXPECT_LT(placed.size(), all.size());
  EXPECT_GT(both.placed.summary.at("missed").value("overlap", 0), 10);
}

TEST(InPlace, OfAProgramThatSaysThem) {
  Victim victim("causes");
  const Traced traced = trace_rounds(victim, "causes", kByRequest, 1000, kInPlace);
  EXPECT_EQ(traced.counted, (Numbers{{"right", traced.truth.at("work")}}));
  const auto& known = traced.report.summary.at("by_cause");
  EXPECT_EQ(known.at("requests"), 1000);
  EXPECT_EQ(known.at("explicit"), traced.truth.at("work"));
}

TEST(InPlace, OfAPoolEveryTaskIsOfItsOwnRequest) {
  constexpr uint64_t kTasks = 200'000;
  Victim victim("causes");
  Tracer tracer = Tracer::attach(victim.pid(), kByRequest, kInPlace);
  victim.ask("pool " + std::to_string(kTasks));
  const Report report = tracer.finish();
  // A worker that stands for so long that all blocks were written anew has an unknown task.
  const uint64_t unknown = report.summary.at("missed").value("no_request", uint64_t{0});
  EXPECT_EQ(report.calls(), (Numbers{{"right", kTasks - unknown}})) << report.summary;
  EXPECT_LT(unknown, kTasks / 100) << report.summary;
}

// A handler that interrupts a probe is missed, and could have handed something over: what was
// handed over before is not known any more.
TEST(InPlace, WhatAHandlerHandsOverIsRightOrUnknown) {
  constexpr uint64_t kHandedOver = 4'000;
  Victim victim("causes");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from w in entry(\"causes!work_elsewhere\") join r in MostRecent(entry(\"causes!receive\")) "
      "on r -> w select new { name = r.arg0 == w.arg0 ? \"right\" : \"wrong\", calls = count() }",
      kInPlace);
  victim.ask("signals " + std::to_string(kHandedOver));
  const Report report = tracer.finish();
  const Numbers counted = report.calls();
  EXPECT_FALSE(counted.contains("wrong")) << report.summary;
  EXPECT_EQ(counted.at("right") + report.summary.at("missed").value("no_request", uint64_t{0}),
            kHandedOver)
      << report.summary;
}

TEST(InPlace, ATracerThatIsKilledLeavesNothingToTheNextOne) {
  Victim victim("causes");
  victim.run(1);
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer killed = Tracer::attach(victim.pid(), kByRequest, kInPlace);
  victim.run(100);
  kill(killed.child().pid(), SIGKILL);
  (void)killed.child().wait_for_end();
  victim.run(100);
  Tracer next = Tracer::attach(victim.pid(), kByRequest, kInPlace);
  const Numbers counts = victim.counts();
  victim.run(100);
  const Numbers truth = difference(counts, victim.counts());
  EXPECT_EQ(next.finish().calls(), (Numbers{{"right", truth.at("work")}}));
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(InPlace, AreExplained) {
  const Victim victim("causes");
  const Child::End end =
      clew({"explain", "--plan", "in-place", "-p", std::to_string(victim.pid()), kByRequest});
  EXPECT_THAT(end.output, HasSubstr("entry(\"causes!receive\") packs r, the first of the request: "
                                    "8 bytes, r.arg0\n"));
  EXPECT_THAT(end.output, HasSubstr("(\"clew_cause_put\") hands the request over (explicit)\n"));
  EXPECT_THAT(end.output, Not(HasSubstr("haproxy")));  // It is not there.
}

// The event of a place is behind the begin there, also where its arguments are read in front of an
// instruction that changes them.
TEST(InPlace, ARequestBeginsBeforeTheEventOfItsPlace) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("widens." + std::to_string(getpid()) + ".toml");
  std::ofstream(path) << "[[tracepoint]]\nname = \"widens.begin\"\nfunction = \"widens!begins\"\n"
                         "exports = { request = \"(int)arg0\" }\ncause = \"begin\"\n";
  for (const char* plan : {"emit", "in-place"}) {
    Victim victim("widens");
    Tracer tracer = Tracer::attach(
        victim.pid(),
        "from w in entry(\"widens!works\") join r in MostRecent(widens.begin) on r -> w select new "
        "{ "
        "name = r.request == w.arg0 ? \"right\" : \"wrong\", calls = count() }",
        {"--plan", plan, "--vocabulary", path.string(), "--allow-late-uprobe-danger"});
    victim.run(100);
    const Report report = tracer.finish();
    EXPECT_EQ(report.calls(), (Numbers{{"right", 100}})) << plan << report.summary;
  }
  // The kernel runs two uprobes of one place in an order of its own.
  Victim victim("widens");
  const Report refused = run_clew(
      {"run",
       "from w in entry(\"widens!works\") join r in MostRecent(widens.begin) on r -> w select "
       "r.request",
       "-p", std::to_string(victim.pid()), "--vocabulary", path.string()});
  EXPECT_THAT(refused.error, HasSubstr("can take no probe"));
  std::filesystem::remove(path);
}

TEST(InPlace, WhatCannotBeIsSaid) {
  Victim victim("causes");
  const auto said = [&](const std::string& query) {
    return run_clew({"run", query, "-p", std::to_string(victim.pid()), "--plan", "in-place"}).error;
  };
  const std::string from = "from w in entry(\"causes!work\") ";
  EXPECT_THAT(said(from + "join r in entry(\"causes!receive\") on r -> w select r.arg0"),
              HasSubstr("of all events that happened before only count() is kept"));
  EXPECT_THAT(said(from + "join r in entry(\"causes!receive\") on r -> w groupby r.arg0 as k "
                          "select k, count()"),
              HasSubstr("what happened before is counted by a key"));
  EXPECT_THAT(said(from + "left join r in First(entry(\"causes!receive\")) on r -> w select "
                          "count()"),
              HasSubstr("a left join has rows of what is not there"));
  EXPECT_THAT(said(from + "join r in First(entry(\"causes!receive\")) on r -> w groupby r.comm "
                          "select count()"),
              HasSubstr("known to the tracer alone"));
  EXPECT_THAT(said(from + "join r in First(entry(\"causes!receive\")) on r -> w groupby "
                          "str(r.arg0) like \"%a%\" as b select b, count()"),
              HasSubstr("not computed in probes"));
}

// As other errors have it; fields are called as the query calls them.
TEST(InPlace, WhatCannotBeHasItsPlace) {
  Victim victim("causes");
  const auto said = [&](const std::string& query) {
    return run_clew({"run", query, "-p", std::to_string(victim.pid()), "--plan", "in-place"}).error;
  };
  const std::string from = "from w in entry(\"causes!work\")\n";
  EXPECT_THAT(said(from + "join r in entry(\"causes!receive\") on r -> w select r.arg0"),
              HasSubstr("query:2:1: error: "));
  const std::string name = said(from +
                                "join r in First(entry(\"causes!receive\")) on r -> w\n"
                                "groupby r.comm select count()");
  EXPECT_THAT(name, HasSubstr("'r.comm' is known to the tracer alone"));
  EXPECT_THAT(name, HasSubstr("query:3:9: error: "));
  EXPECT_THAT(said(from + "join r in First(entry(\"causes!receive\")) on r -> w\n"
                          "groupby str(r.arg0) like \"%a%\" as b select b, count()"),
              HasSubstr("query:3:"));
}

TEST(InPlace, ThatNoRequestBeganIsSaidAndSoIsTheWindow) {
  Victim victim("causes");
  Tracer tracer = Tracer::attach(victim.pid(), kByRequest, kInPlace);
  const Report report = tracer.finish();
  EXPECT_EQ(report.summary.at("by_cause").at("requests"), 0);
  EXPECT_GT(report.summary.at("window_ms").get<double>(), 0.0);
}

}  // namespace
}  // namespace clew::live
