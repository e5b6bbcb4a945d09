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

}  // namespace
}  // namespace clew::output
