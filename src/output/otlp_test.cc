// SPDX-License-Identifier: Apache-2.0
// Requests of OTLP, as OTLP 1.0 and protobuf's JSON mapping want them: 64-bit numbers are in
// quotes, enumerations are numbers, and no member is one that a receiver does not know.
#include "output/otlp.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Histogram;
using aggregate::HistogramKind;
using aggregate::Unit;
using aggregate::Value;
using ParsedJson = nlohmann::json;
using testing::ElementsAre;

class Requests : public testing::Test, public OtlpPlace {
 protected:
  void post(OtlpRequest request) override { all_.push_back(std::move(request)); }
  void uncorrected(uint64_t count) override { uncorrected_ += count; }

  [[nodiscard]] ParsedJson body(size_t index) const {
    return ParsedJson::parse(all_.at(index).body);
  }
  [[nodiscard]] ParsedJson metrics(size_t index) const {
    return body(index)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
  }

  std::vector<OtlpRequest> all_;
  uint64_t uncorrected_ = 0;
  OtlpSink sink_{{.query = "http",
                  .version = "1.2",
                  .resource = {{"host.name", "db1"}, {"service.name", "shopd"}},
                  .started_ns = 500},
                 *this};
};

TEST_F(Requests, HaveCountsAsDeltasOfTheirInterval) {
  sink_.begin(
      std::vector<Column>{{.name = "procName", .type = ColumnType::String, .role = ColumnRole::Key},
                          {.name = "pid", .role = ColumnRole::Key},
                          {.name = "Calls", .role = ColumnRole::Aggregate, .only_grows = true}},
      RowMode::Table);
  sink_.row(std::vector<Value>{std::string("a\"b\xff"), int64_t{17}, int64_t{3}});
  sink_.end_interval(
      {.number = 1, .begin_ns = 1'700'000'000'000'000'000, .end_ns = 1'700'000'001'000'000'000});
  ASSERT_EQ(all_.size(), 1U);
  EXPECT_EQ(all_[0].points, 1U);
  EXPECT_EQ(body(0), ParsedJson::parse(R"({"resourceMetrics":[{
    "resource":{"attributes":[{"key":"host.name","value":{"stringValue":"db1"}},
                              {"key":"service.name","value":{"stringValue":"shopd"}}]},
    "scopeMetrics":[{"scope":{"name":"clew","version":"1.2"},"metrics":[{
      "name":"clew.http.calls","description":"Calls of query http","unit":"",
      "sum":{"aggregationTemporality":1,"isMonotonic":true,"dataPoints":[{
        "attributes":[{"key":"process.executable.name","value":{"stringValue":"a\"b\\xff"}},
                      {"key":"process.pid","value":{"intValue":"17"}}],
        "startTimeUnixNano":"1700000000000000000","timeUnixNano":"1700000001000000000",
        "asInt":"3"}]}}]}]}]})"));
}

TEST_F(Requests, HaveDurationsInSecondsAndWhatDoesNotAddUpAsGauges) {
  sink_.begin(std::vector<Column>{{.name = "took",
                                   .unit = Unit::Nanoseconds,
                                   .role = ColumnRole::Aggregate,
                                   .only_grows = true},
                                  {.name = "p99",
                                   .type = ColumnType::Float,
                                   .unit = Unit::Nanoseconds,
                                   .approximate = true,
                                   .role = ColumnRole::Aggregate,
                                   .adds_up = false},
                                  {.name = "balance", .role = ColumnRole::Aggregate},
                                  {.name = "most",
                                   .type = ColumnType::Unsigned,
                                   .role = ColumnRole::Aggregate,
                                   .adds_up = false}},
              RowMode::Table);
  sink_.row(std::vector<Value>{int64_t{2'500'000}, 1.5e9, int64_t{-7},
                               std::numeric_limits<uint64_t>::max()});
  sink_.row(std::vector<Value>{int64_t{0}, std::monostate{}, int64_t{0}, std::monostate{}});
  sink_.end_interval({.number = 1, .begin_ns = 10, .end_ns = 20});
  const ParsedJson all = metrics(0);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0]["unit"], "s");
  EXPECT_EQ(all[0]["sum"]["dataPoints"][0]["asDouble"], 0.0025);
  EXPECT_EQ(all[1]["gauge"].size(), 1U) << "no temporality";
  EXPECT_EQ(all[2]["sum"]["isMonotonic"], false);
  EXPECT_EQ(all[2]["sum"]["dataPoints"][0]["asInt"], "-7");
  EXPECT_EQ(all[3]["name"], "clew.http.most");
}

TEST_F(Requests, HaveHistogramsWithExactBoundsAndTheSumThatIsAskedFor) {
  sink_.begin(std::vector<Column>{{.name = "took",
                                   .type = ColumnType::Histogram,
                                   .unit = Unit::Nanoseconds,
                                   .role = ColumnRole::Aggregate,
                                   .sum_column = 1},
                                  {.name = "all",
                                   .unit = Unit::Nanoseconds,
                                   .role = ColumnRole::Aggregate,
                                   .only_grows = true}},
              RowMode::Table);
  const Histogram powers{.kind = HistogramKind::Quantize,
                         .buckets = {{.low = -1},
                                     {.low = 0, .count = 2},
                                     {.low = 1, .count = 0},
                                     {.low = 2, .count = 5},
                                     {.low = 4, .count = 1}}};
  sink_.row(std::vector<Value>{powers, int64_t{21}});
  sink_.end_interval({.number = 1, .begin_ns = 10, .end_ns = 20});
  const ParsedJson histogram = metrics(0)[0]["histogram"];
  EXPECT_EQ(histogram["aggregationTemporality"], 1);
  const ParsedJson point = histogram["dataPoints"][0];
  EXPECT_EQ(point["count"], "8");
  EXPECT_EQ(point["sum"], 21e-9);
  EXPECT_THAT(point["bucketCounts"], ElementsAre("2", "0", "5", "1"));
  EXPECT_THAT(point["explicitBounds"], ElementsAre(0.0, 1e-9, 3e-9));
}

TEST_F(Requests, HaveAnAnswerWithoutIntervalsAsOneFromTheBegin) {
  sink_.begin(std::vector<Column>{{.name = "calls", .role = ColumnRole::Aggregate}},
              RowMode::Table);
  sink_.row(std::vector<Value>{int64_t{4}});
  sink_.finish({});
  ASSERT_EQ(all_.size(), 1U);
  const ParsedJson point = metrics(0)[0]["sum"]["dataPoints"][0];
  EXPECT_EQ(point["startTimeUnixNano"], "500");
  EXPECT_EQ(point["asInt"], "4");
}

TEST_F(Requests, AreSplitAndHaveTheirMarkInTheLastOne) {
  sink_.begin(std::vector<Column>{{.name = "k", .role = ColumnRole::Key},
                                  {.name = "calls", .role = ColumnRole::Aggregate}},
              RowMode::Table);
  sink_.set_mark(7, false);
  for (int64_t i = 0; i < 4'500; ++i)
    sink_.row(std::vector<Value>{i, int64_t{1}});
  sink_.end_interval({.number = 1, .begin_ns = 10, .end_ns = 20});
  std::vector<uint64_t> points;
  std::vector<uint64_t> marks;
  for (const OtlpRequest& request : all_) {
    points.push_back(request.points);
    marks.push_back(request.mark);
  }
  EXPECT_THAT(points, ElementsAre(2'000U, 2'000U, 500U));
  EXPECT_THAT(marks, ElementsAre(0U, 0U, 7U));
}

TEST_F(Requests, OfWhatIsKnownAreNotMadeButCorrectedLater) {
  sink_.begin(std::vector<Column>{{.name = "calls", .role = ColumnRole::Aggregate}},
              RowMode::Table);
  sink_.set_mark(1, true);
  sink_.row(std::vector<Value>{int64_t{4}});
  sink_.end_interval({.number = 1, .begin_ns = 10, .end_ns = 20});
  EXPECT_TRUE(all_.empty());
  sink_.set_mark(1, false);
  sink_.row(std::vector<Value>{int64_t{6}});
  sink_.end_interval({.number = 1, .begin_ns = 10, .end_ns = 20});
  sink_.set_mark(2, false);
  sink_.row(std::vector<Value>{int64_t{1}});
  sink_.end_interval({.number = 2, .begin_ns = 20, .end_ns = 30});
  ASSERT_EQ(all_.size(), 1U);
  EXPECT_EQ(metrics(0)[0]["sum"]["dataPoints"][0]["asInt"], "3") << "2 late ones and 1";
}

TEST(OtlpAbout, HasTheServiceWhereItIsOneName) {
  About about{.host = "db1", .targets = {{"name", "redis-server"}}};
  EXPECT_THAT(
      otlp_about(about, "q").resource,
      ElementsAre(std::pair("host.name", "db1"), std::pair("service.name", "redis-server")));
  about.targets = {{"command", "/usr/bin/ls -l"}};
  EXPECT_EQ(otlp_about(about, "q").resource.at(1).second, "ls");
  about.targets = {{"name", "redis-*"}};
  EXPECT_EQ(otlp_about(about, "q").resource.size(), 1U);
}

}  // namespace
}  // namespace clew::output
