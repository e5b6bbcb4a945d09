// SPDX-License-Identifier: Apache-2.0
// What `clew explain` says of joins, and what `--run` counts: compared with what the victim knows.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr uint64_t kAsked = 60;

// Each request receives once, and works for itself. Requests have numbers from 0 on.
constexpr const char* kJoined =
    "from w in entry(\"causes!work\") join r in First(entry(\"causes!receive\")) on r -> w "
    "where w.arg1 >= 0 && r.arg0 == w.arg0 && r.arg0 != w.arg0 select r.arg0, w.arg0";

// The line of the run that has these values.
Json line_of(const Report& report, const std::string& run, const std::string& name = "") {
  for (const Json& row : report.rows) {
    if (row.value("run", "") == run && (name.empty() || row.value("name", "") == name)) return row;
  }
  ADD_FAILURE() << "no line of " << run << " " << name;
  return Json::object();
}

struct Explained {
  Report report;
  Numbers truth;
};

Explained explain(const std::string& query, const std::vector<std::string>& more) {
  Victim victim("causes");
  victim.run(3);
  Tracer tracer = Tracer::explain(victim.pid(), query, more);
  const Numbers before = victim.counts();
  victim.run(kAsked);
  Explained explained;
  explained.truth = difference(before, victim.counts());
  explained.report = tracer.finish();
  EXPECT_EQ(explained.report.status, 0) << explained.report.error;
  return explained;
}

void expect_true_counts(const Explained& explained) {
  const uint64_t works = explained.truth.at("work");
  EXPECT_EQ(line_of(explained.report, "requests").at("requests"), kAsked);
  const Json from = line_of(explained.report, "from");
  EXPECT_EQ(from.at("events"), works);
  EXPECT_EQ(from.at("rows"), works);
  EXPECT_EQ(from.at("no_request"), 0);
  EXPECT_EQ(from.at("unjoined"), 0);
  const Json join = line_of(explained.report, "join", "r");
  EXPECT_EQ(join.at("events"), kAsked);
  EXPECT_EQ(join.at("tuples"), kAsked);
  EXPECT_EQ(join.at("bytes"), 8 * kAsked);
  EXPECT_EQ(join.at("bytes_max"), 8);
  EXPECT_EQ(join.at("taken"), works);
  EXPECT_EQ(line_of(explained.report, "answer").at("rows"), 0);
  EXPECT_EQ(explained.report.lost(), 0);
}

TEST(Explain, RunCountsWhatRequestsCarry) {
  const Explained explained = explain(kJoined, {});
  expect_true_counts(explained);
  const Json requests = line_of(explained.report, "requests");
  EXPECT_EQ(requests.at("tuples"), kAsked);
  EXPECT_EQ(requests.at("tuples_max"), 1);
  EXPECT_EQ(requests.at("bytes_max"), 8);
  std::vector<uint64_t> left_out;
  for (const Json& row : explained.report.rows) {
    if (row.value("run", "") == "filter") left_out.push_back(row.at("left_out"));
  }
  EXPECT_EQ(left_out, (std::vector<uint64_t>{0, explained.truth.at("work")}));
}

TEST(Explain, RunCountsWhatContextsCarryInPlace) {
  const Explained explained = explain(kJoined, {"--plan", "in-place"});
  expect_true_counts(explained);
  const uint64_t works = explained.truth.at("work");
  EXPECT_EQ(line_of(explained.report, "filter").at("left_out"), works);
  const uint64_t context = line_of(explained.report, "requests").at("context_bytes");
  for (const Json& row : explained.report.rows) {
    if (row.value("cause", "") != "take key") continue;
    EXPECT_EQ(row.at("events"), works);
    EXPECT_EQ(row.at("found"), works);
    EXPECT_EQ(row.at("bytes"), works * context);
  }
}

TEST(Explain, SaysWhereEachConditionStandsAndWhy) {
  const Victim victim("causes");
  const Report report =
      run_clew({"explain", "--json", kJoined, "-p", std::to_string(victim.pid())});
  std::vector<std::string> places;
  for (const Json& row : report.rows) {
    if (row.contains("condition")) {
      places.push_back(row.at("tier").get<std::string>() + ": " + row.value("why", ""));
    }
    if (row.contains("join")) {
      EXPECT_EQ(row.at("fields"), (Json{"r.arg0"}));
    }
  }
  EXPECT_EQ(places, (std::vector<std::string>{"probe: ", "node: it is of several events",
                                              "node: it is of several events"}));
}

// Vocabularies know many programs.
TEST(Explain, LeavesOutTheProgramsOfPlacesThatAreNotThere) {
  const Victim victim("causes");
  const Report report =
      run_clew({"explain", "--json", kJoined, "-p", std::to_string(victim.pid())});
  size_t acts = 0;
  for (const Json& row : report.rows)
    acts += row.value("what", "").starts_with("entry(\"clew_cause_") ? 1 : 0;
  const Child::End end =
      clew({"explain", "--plan", "in-place", "-p", std::to_string(victim.pid()), kJoined});
  size_t programs = 0;
  for (size_t at = 0; (at = end.output.find("\nprogram of source", at)) != std::string::npos; ++at)
    ++programs;
  EXPECT_EQ(programs, acts + 2);  // And those of both streams.
}

TEST(Explain, RunIsOfJoins) {
  const Victim victim("causes");
  const Report report =
      run_clew({"explain", "--run", "from w in entry(\"causes!work\") select count()", "-p",
                std::to_string(victim.pid())});
  EXPECT_NE(report.status, 0);
  EXPECT_THAT(report.error, HasSubstr("--run counts what joins by cause carry"));
}

}  // namespace
}  // namespace clew::live
