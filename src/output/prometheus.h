// SPDX-License-Identifier: Apache-2.0
// Rows as Prometheus reads them (its text format, version 0.0.4): a column that is counted is a
// metric, keys are its labels. What adds up is a counter, whose rows are of all that was counted so
// far; what does not, as a maximum, is a gauge, whose rows are of the last interval, and so is
// whatever windows count. quantize and its kin are histograms, which have a _sum where the query
// has a sum of the same values. Durations are in seconds. Lists, and histograms of windows, are
// left out.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "output/metric_buckets.h"
#include "output/metric_rows.h"
#include "output/row_sink.h"

namespace clew::output {

// "a metric_name{label=...}" of it: letters, digits and _, the first no digit; aWord is a_word.
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
  struct Cells {
    std::string labels{};
    MetricBuckets buckets{};
    std::string sum{};  // Empty: not known.
  };
  struct Metric {
    std::string name{};
    std::string help{};
    MetricColumn column{};
    std::string lines{};
    std::vector<Cells> histograms{};
  };

  [[nodiscard]] std::string name_of(const MetricColumn& metric) const;
  [[nodiscard]] std::string labels_of(std::span<const aggregate::Value> values) const;
  void add_histogram(Metric& metric, std::span<const aggregate::Value> values,
                     const std::string& labels);
  [[nodiscard]] std::string lines_of(const Metric& metric) const;

  std::string query_;
  Metrics metrics_;
  std::vector<aggregate::Column> columns_;
  MetricShape shape_;
  std::vector<Metric> all_;
};

// An answer as it goes on, for whoever fetches it now and then.
class PrometheusRows final : public RowSink {
 public:
  // Of label sets: more would be too much for Prometheus, and are counted.
  static constexpr size_t kSeriesMax = 10'000;

  explicit PrometheusRows(std::string_view query) : query_(query) {}

  void begin(Columns columns, RowMode mode) override;
  void row(std::span<const aggregate::Value> values) override { rows_.row(values); }
  void end_interval(const Interval& interval) override;
  void finish(const collect::Losses& losses) override;
  // What was counted so far, and the last interval.
  [[nodiscard]] std::string text() const;

 private:
  void take(std::vector<MetricRow> rows);

  std::string query_;
  MetricRows rows_;
  std::map<std::string, std::vector<aggregate::Value>> totals_;  // By their labels.
  std::map<std::string, MetricRow> last_;
  uint64_t left_out_ = 0;
};

}  // namespace clew::output
