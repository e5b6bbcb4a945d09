// SPDX-License-Identifier: Apache-2.0
// Rows as Prometheus reads them (its text format, version 0.0.4): a column that is counted is a
// metric, keys are its labels. What adds up is a counter, whose rows are of all that was counted so
// far; what does not, as a maximum, is a gauge, whose rows are of the last interval. Durations are
// in seconds. Histograms and lists are left out.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/row_sink.h"

namespace clew::output {

// "a metric_name{label=...}" of it: letters, digits and _, the first no digit.
std::string metric_name(std::string_view text);
// In quotes.
std::string metric_label(std::string_view text);

class PrometheusText final : public RowSink {
 public:
  enum class Metrics : uint8_t { Counters, Gauges };
  // Names begin with clew_ and the query's.
  PrometheusText(std::string_view query, Metrics metrics) : query_(query), metrics_(metrics) {}

  void begin(std::span<const aggregate::Column> columns, RowMode mode) override;
  void row(std::span<const aggregate::Value> values) override;
  void end_interval(const Interval&) override {}
  void finish(const collect::Losses&) override {}
  // All of one metric stands together, as the format wants it.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] bool is_metric(const aggregate::Column& column) const;

  std::string query_;
  Metrics metrics_;
  std::vector<aggregate::Column> columns_;
  struct Metric {
    std::string help;
    std::string lines;
  };
  std::map<std::string, Metric> by_name_;
};

}  // namespace clew::output
