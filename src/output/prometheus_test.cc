// SPDX-License-Identifier: Apache-2.0
// Rows as metrics.
#include "output/prometheus.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Unit;
using aggregate::Value;
using Metrics = PrometheusText::Metrics;

std::string text_of(Metrics metrics) {
  const std::vector<Column> columns = {
      {.name = "file name", .type = ColumnType::String, .role = ColumnRole::Key},
      {.name = "calls", .type = ColumnType::Unsigned, .role = ColumnRole::Aggregate},
      {.name = "2nd",
       .type = ColumnType::Float,
       .unit = Unit::Nanoseconds,
       .role = ColumnRole::Aggregate,
       .adds_up = false},
      {.name = "took", .unit = Unit::Nanoseconds, .role = ColumnRole::Aggregate},
      {.name = "pid", .role = ColumnRole::Key}};
  PrometheusText sink("http-files", metrics);
  sink.begin(columns, RowMode::Table);
  const std::vector<Value> first = {std::string("a\"b\\c\nd"), uint64_t{7}, 1.5e9,
                                    int64_t{2'500'000}, int64_t{-1}};
  const std::vector<Value> second = {std::string(), uint64_t{1} << 40,
                                     std::numeric_limits<double>::infinity(), int64_t{0},
                                     int64_t{5}};
  sink.row(first);
  sink.row(second);
  return sink.text();
}

TEST(PrometheusText, CountsWhatAddsUp) {
  EXPECT_EQ(text_of(Metrics::Counters),
            "# HELP clew_http_files_calls_total calls of query http-files\n"
            "# TYPE clew_http_files_calls_total counter\n"
            "clew_http_files_calls_total{file_name=\"a\\\"b\\\\c\\nd\",pid=\"-1\"} 7\n"
            "clew_http_files_calls_total{file_name=\"\",pid=\"5\"} 1099511627776\n"
            "# HELP clew_http_files_took_seconds_total took of query http-files\n"
            "# TYPE clew_http_files_took_seconds_total counter\n"
            "clew_http_files_took_seconds_total{file_name=\"a\\\"b\\\\c\\nd\",pid=\"-1\"} 0.0025\n"
            "clew_http_files_took_seconds_total{file_name=\"\",pid=\"5\"} 0\n");
}

TEST(PrometheusText, MeasuresWhatDoesNot) {
  EXPECT_EQ(text_of(Metrics::Gauges),
            "# HELP clew_http_files__2nd_seconds 2nd of query http-files\n"
            "# TYPE clew_http_files__2nd_seconds gauge\n"
            "clew_http_files__2nd_seconds{file_name=\"a\\\"b\\\\c\\nd\",pid=\"-1\"} 1.5\n"
            "clew_http_files__2nd_seconds{file_name=\"\",pid=\"5\"} +Inf\n");
}

aggregate::Histogram powers(uint64_t ones, uint64_t fours) {
  return {.kind = aggregate::HistogramKind::Quantize,
          .buckets = {{.low = -1},
                      {.low = 0},
                      {.low = 1, .count = ones},
                      {.low = 2},
                      {.low = 4, .count = fours},
                      {.low = 8}}};
}

std::vector<Column> timed() {
  return {{.name = "procName", .type = ColumnType::String, .role = ColumnRole::Key},
          {.name = "took",
           .type = ColumnType::Histogram,
           .unit = Unit::Nanoseconds,
           .role = ColumnRole::Aggregate,
           .sum_column = 2},
          {.name = "count", .unit = Unit::Nanoseconds, .role = ColumnRole::Aggregate}};
}

// A le is a bucket's largest value: [4, 7] of nanoseconds, and all label sets have the same.
TEST(PrometheusText, HasHistogramsInBuckets) {
  PrometheusText sink("q", Metrics::Counters);
  sink.begin(timed(), RowMode::Table);
  sink.row(std::vector<Value>{std::string("a"), powers(3, 2), int64_t{14}});
  sink.row(std::vector<Value>{std::string("b"), powers(1, 0), std::monostate{}});
  EXPECT_EQ(sink.text(),
            "# HELP clew_q_count_seconds_total count of query q\n"
            "# TYPE clew_q_count_seconds_total counter\n"
            "clew_q_count_seconds_total{proc_name=\"a\"} 1.4e-08\n"
            "# HELP clew_q_took_seconds took of query q\n"
            "# TYPE clew_q_took_seconds histogram\n"
            "clew_q_took_seconds_bucket{proc_name=\"a\",le=\"1e-09\"} 3\n"
            "clew_q_took_seconds_bucket{proc_name=\"a\",le=\"3e-09\"} 3\n"
            "clew_q_took_seconds_bucket{proc_name=\"a\",le=\"7e-09\"} 5\n"
            "clew_q_took_seconds_bucket{proc_name=\"a\",le=\"+Inf\"} 5\n"
            "clew_q_took_seconds_sum{proc_name=\"a\"} 1.4e-08\n"
            "clew_q_took_seconds_count{proc_name=\"a\"} 5\n"
            "clew_q_took_seconds_bucket{proc_name=\"b\",le=\"1e-09\"} 1\n"
            "clew_q_took_seconds_bucket{proc_name=\"b\",le=\"3e-09\"} 1\n"
            "clew_q_took_seconds_bucket{proc_name=\"b\",le=\"7e-09\"} 1\n"
            "clew_q_took_seconds_bucket{proc_name=\"b\",le=\"+Inf\"} 1\n"
            "clew_q_took_seconds_count{proc_name=\"b\"} 1\n");
}

TEST(PrometheusText, HasNoNameTwiceAndNoneThatIsOfAnotherKind) {
  PrometheusText sink("q", Metrics::Gauges);
  sink.begin(
      std::vector<Column>{{.name = "a b", .role = ColumnRole::Aggregate, .adds_up = false},
                          {.name = "a_b", .role = ColumnRole::Aggregate, .adds_up = false},
                          {.name = "total", .role = ColumnRole::Aggregate, .adds_up = false}},
      RowMode::Table);
  sink.row(std::vector<Value>{int64_t{1}, int64_t{2}, int64_t{3}});
  const std::string text = sink.text();
  EXPECT_NE(text.find("\nclew_q_a_b{} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nclew_q_a_b_{} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nclew_q_total_value{} 3\n"), std::string::npos) << text;
}

TEST(PrometheusRows, AddUpIntervalsWithWhatIsCorrected) {
  PrometheusRows sink("q");
  sink.begin(
      std::vector<Column>{{.name = "calls", .role = ColumnRole::Aggregate},
                          {.name = "worst", .role = ColumnRole::Aggregate, .adds_up = false}},
      RowMode::Table);
  const auto interval = [&](uint64_t number, int64_t calls, int64_t worst) {
    sink.row(std::vector<Value>{calls, worst});
    const auto begin = static_cast<int64_t>(number) * 10;
    sink.end_interval({.number = number, .begin_ns = begin, .end_ns = begin + 10});
  };
  interval(1, 3, 30);
  interval(2, 4, 20);
  interval(1, 5, 40);
  interval(3, 1, 10);
  const std::string text = sink.text();
  EXPECT_NE(text.find("\nclew_q_calls_total{} 10\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nclew_q_worst{} 10\n"), std::string::npos) << text;
}

TEST(PrometheusRows, OfWindowsAreThoseOfTheLastOne) {
  PrometheusRows sink("q");
  sink.begin(
      std::vector<Column>{{.name = "who", .type = ColumnType::String, .role = ColumnRole::Key},
                          {.name = "from", .type = ColumnType::Time, .role = ColumnRole::Key},
                          {.name = "calls", .role = ColumnRole::Aggregate},
                          {.name = "version", .adds_up = false}},
      RowMode::Table);
  sink.row(std::vector<Value>{std::string("a"), int64_t{10}, int64_t{3}, int64_t{1}});
  sink.row(std::vector<Value>{std::string("b"), int64_t{10}, int64_t{1}, int64_t{1}});
  sink.end_interval({.number = 1, .begin_ns = 10, .end_ns = 20});
  sink.row(std::vector<Value>{std::string("a"), int64_t{20}, int64_t{7}, int64_t{1}});
  sink.end_interval({.number = 2, .begin_ns = 20, .end_ns = 30});
  sink.row(std::vector<Value>{std::string("a"), int64_t{20}, int64_t{8}, int64_t{2}});
  sink.end_interval({.number = 3, .begin_ns = 20, .end_ns = 30});
  EXPECT_EQ(sink.text(),
            "# HELP clew_q_calls calls of query q\n"
            "# TYPE clew_q_calls gauge\n"
            "clew_q_calls{who=\"a\"} 8\n");
}

}  // namespace
}  // namespace clew::output
