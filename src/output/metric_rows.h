// SPDX-License-Identifier: Apache-2.0
// Rows as monitoring systems see them: counted columns are metrics, what they are grouped by are
// labels, and an interval adds to those before it. Whatever is exported to such a system goes
// through here.
//
// A row that comes again, whole, with more in it, as late tables of nodes do (an interval
// whose number was there before), is the difference: of what adds up it goes with the next
// interval, so that no receiver sees two points of one time, which most of them drop, and sums are
// exact. What does not add up (a maximum, a quantile) stays as it was told, or untold, and is
// counted.
//
// Windows (query/window.h) are different: each row says all of its window, and windows may overlap.
// What they count is given as it is, newest version last, and nothing is added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregate/value.h"
#include "base/error.h"
#include "output/row_sink.h"

namespace clew::output {

enum class MetricKind : uint8_t {
  Sum,
  Gauge,
  Histogram,
};

struct MetricColumn {
  size_t column = 0;
  MetricKind kind = MetricKind::Gauge;
};

struct MetricShape {
  std::vector<MetricColumn> metrics{};
  std::vector<size_t> labels{};  // Columns; no times.
  std::vector<size_t> times{};
  bool by_window = false;
};
[[nodiscard]] MetricShape metric_shape(Columns columns);
// InvalidQuery: nothing of it is a metric; `name` is who wants to write it.
Expected<void> check_metrics(std::string_view name, Columns columns);

// Adds `from` to `into`, or takes it away: numbers of one type, or histograms with the same
// buckets. Others are left alone.
void add_metric(aggregate::Value& into, const aggregate::Value& from);
void subtract_metric(aggregate::Value& into, const aggregate::Value& from);

// "7", "a text", "" for nothing.
[[nodiscard]] std::string metric_text(const aggregate::Value& value);

struct MetricRow {
  std::vector<aggregate::Value> values{};  // Of all columns.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

class MetricRows {
 public:
  // So many values of intervals that were given are kept for corrections; each bucket is one.
  static constexpr size_t kKeptMax = 200'000;
  // And so many intervals, also empty ones: a root corrects no older ones.
  static constexpr size_t kIntervalsKept = 256;

  void begin(Columns columns);
  void row(std::span<const aggregate::Value> values);
  // What is to be told of this interval; rows of one group are one.
  std::vector<MetricRow> end_interval(const Interval& interval);
  // What was to go with the next interval, where none comes.
  std::vector<MetricRow> finish();
  [[nodiscard]] bool has_rows() const { return !rows_.empty(); }

  [[nodiscard]] const MetricShape& shape() const { return shape_; }
  [[nodiscard]] const std::vector<aggregate::Column>& columns() const { return columns_; }
  [[nodiscard]] std::string labels_key(const std::vector<aggregate::Value>& row) const;
  // Values that were told and have changed since, of what does not add up, or so late that they
  // are known no more.
  [[nodiscard]] uint64_t uncorrected() const { return uncorrected_; }

 private:
  using Rows = std::map<std::string, std::vector<aggregate::Value>>;  // By their labels.
  struct Given {
    uint64_t number = 0;
    Rows rows{};
    size_t size = 0;  // Of values.
  };

  void correct(uint64_t number);
  void correct_row(Given& given, const std::string& key, std::vector<aggregate::Value> row);
  void carry(const std::string& key, const std::vector<aggregate::Value>& row);
  std::vector<MetricRow> give_windows(const Interval& interval);
  [[nodiscard]] size_t size_of(const std::vector<aggregate::Value>& row) const;
  void keep(uint64_t number);
  void forget();

  std::vector<aggregate::Column> columns_;
  MetricShape shape_;
  Rows rows_;                                           // Of the interval that is open.
  std::vector<std::vector<aggregate::Value>> windows_;  // The same, where they have windows.
  Rows carried_;
  std::deque<Given> given_;  // By their numbers.
  size_t kept_ = 0;
  std::optional<uint64_t> last_;
  std::optional<uint64_t> forgotten_;  // This one and those before it.
  int64_t last_end_ns_ = 0;
  uint64_t uncorrected_ = 0;
};

}  // namespace clew::output
