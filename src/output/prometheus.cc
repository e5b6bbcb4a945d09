// SPDX-License-Identifier: Apache-2.0
#include "output/prometheus.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::Unit;
using aggregate::Value;

constexpr double kNsOfSecond = 1e9;

std::optional<double> number_of(const Value& value, Unit unit) {
  std::optional<double> number;
  if (const auto* whole = std::get_if<int64_t>(&value)) number = static_cast<double>(*whole);
  if (const auto* whole = std::get_if<uint64_t>(&value)) number = static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (number && unit == Unit::Nanoseconds) *number /= kNsOfSecond;
  return number;
}

std::string shown(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", number);
}

std::string help_text(std::string_view text) {
  std::string help;
  for (const char each : text) {
    if (each == '\\') help += '\\';
    each == '\n' ? help += "\\n" : help += each;
  }
  return help;
}

// What Prometheus keeps for others: a gauge is called neither so nor so.
std::string without_kind(std::string name) {
  static constexpr std::array<std::string_view, 4> kOthers = {"_total", "_sum", "_count",
                                                              "_bucket"};
  const bool is_others = std::any_of(kOthers.begin(), kOthers.end(),
                                     [&](std::string_view end) { return name.ends_with(end); });
  return is_others ? name + "_value" : name;
}

std::string with_label(const std::string& labels, const std::string& more) {
  return labels.empty() ? more : labels + "," + more;
}

}  // namespace

std::string metric_name(std::string_view text) {
  std::string name;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    const bool is_word = std::isupper(byte) != 0 && !name.empty() &&
                         std::islower(static_cast<unsigned char>(name.back())) != 0;
    if (is_word) name += '_';
    name += std::isalnum(byte) == 0 ? '_' : static_cast<char>(std::tolower(byte));
  }
  const bool begins_wrong =
      name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  return begins_wrong ? "_" + name : name;
}

std::string metric_label(std::string_view text) {
  std::string label = "\"";
  for (const char each : text) {
    if (each == '\\' || each == '"') label += '\\';
    if (each == '\n') {
      label += "\\n";
    } else {
      label += each;
    }
  }
  return label + '"';
}

// --- PrometheusText ------------------------------------------------------------------------------

void PrometheusText::begin(std::span<const Column> columns, RowMode) {
  columns_.assign(columns.begin(), columns.end());
  shape_ = metric_shape(columns);
  std::set<std::string> names;
  for (const MetricColumn& metric : shape_.metrics) {
    const bool is_counter = metric.kind != MetricKind::Gauge;
    if (is_counter != (metrics_ == Metrics::Counters)) continue;
    Metric& made = all_.emplace_back(Metric{.name = name_of(metric), .column = metric});
    made.help = help_text(fmt::format("{} of query {}", columns_[metric.column].name, query_));
    // Two columns may differ in what no name has.
    while (!names.insert(made.name).second)
      made.name += "_";
  }
}

std::string PrometheusText::name_of(const MetricColumn& metric) const {
  const Column& column = columns_[metric.column];
  const std::string name =
      fmt::format("clew_{}_{}{}", metric_name(query_), metric_name(column.name),
                  column.unit == Unit::Nanoseconds ? "_seconds" : "");
  return metric.kind == MetricKind::Sum ? name + "_total" : without_kind(name);
}

std::string PrometheusText::labels_of(std::span<const Value> values) const {
  std::string labels;
  std::set<std::string> names;
  for (const size_t label : shape_.labels) {
    std::string name = metric_name(columns_[label].name);
    while (!names.insert(name).second)
      name += "_";
    labels =
        with_label(labels, fmt::format("{}={}", name, metric_label(metric_text(values[label]))));
  }
  return labels;
}

void PrometheusText::row(std::span<const Value> values) {
  const std::string labels = labels_of(values);
  for (Metric& metric : all_) {
    const size_t column = metric.column.column;
    if (metric.column.kind == MetricKind::Histogram) {
      add_histogram(metric, values, labels);
      continue;
    }
    if (const auto number = number_of(values[column], columns_[column].unit))
      metric.lines += fmt::format("{}{{{}}} {}\n", metric.name, labels, shown(*number));
  }
}

void PrometheusText::add_histogram(Metric& metric, std::span<const Value> values,
                                   const std::string& labels) {
  const Column& column = columns_[metric.column.column];
  const auto* const histogram = std::get_if<aggregate::Histogram>(&values[metric.column.column]);
  if (histogram == nullptr) return;
  Cells cells{.labels = labels, .buckets = buckets_of(*histogram, true)};
  if (column.sum_column) {
    const size_t sum = *column.sum_column;
    if (const auto number = number_of(values[sum], columns_[sum].unit)) cells.sum = shown(*number);
  }
  metric.histograms.push_back(std::move(cells));
}

// Of all buckets those between the first and the last in which something is, for all rows the same.
std::string PrometheusText::lines_of(const Metric& metric) const {
  if (metric.histograms.empty()) return metric.lines;
  const double scale = columns_[metric.column.column].unit == Unit::Nanoseconds ? kNsOfSecond : 1;
  size_t first = metric.histograms[0].buckets.bounds.size();
  size_t end = 0;
  for (const Cells& cells : metric.histograms) {
    for (size_t i = 0; i < cells.buckets.bounds.size(); ++i) {
      if (cells.buckets.counts[i] == 0) continue;
      first = std::min(first, i);
      end = std::max(end, i + 1);
    }
  }
  std::string lines;
  for (const Cells& cells : metric.histograms) {
    uint64_t count = 0;
    for (size_t i = first; i < end; ++i) {
      count += cells.buckets.counts[i];
      const std::string bound = shown(static_cast<double>(cells.buckets.bounds[i]) / scale);
      lines += fmt::format("{}_bucket{{{}}} {}\n", metric.name,
                           with_label(cells.labels, fmt::format("le=\"{}\"", bound)), count);
    }
    lines += fmt::format("{}_bucket{{{}}} {}\n", metric.name,
                         with_label(cells.labels, "le=\"+Inf\""), cells.buckets.count());
    if (!cells.sum.empty())
      lines += fmt::format("{}_sum{{{}}} {}\n", metric.name, cells.labels, cells.sum);
    lines += fmt::format("{}_count{{{}}} {}\n", metric.name, cells.labels, cells.buckets.count());
  }
  return lines;
}

std::string PrometheusText::text() const {
  std::map<std::string, std::string> by_name;
  for (const Metric& metric : all_) {
    const std::string lines = lines_of(metric);
    if (lines.empty()) continue;
    const char* const type = metric.column.kind == MetricKind::Histogram ? "histogram"
                             : metric.column.kind == MetricKind::Sum     ? "counter"
                                                                         : "gauge";
    by_name[metric.name] = fmt::format("# HELP {} {}\n# TYPE {} {}\n{}", metric.name, metric.help,
                                       metric.name, type, lines);
  }
  std::string text;
  for (const auto& [name, block] : by_name)
    text += block;
  return text;
}

// --- PrometheusRows ------------------------------------------------------------------------------

void PrometheusRows::begin(Columns columns, RowMode) {
  rows_.begin(columns);
}

void PrometheusRows::end_interval(const Interval& interval) {
  std::vector<MetricRow> rows = rows_.end_interval(interval);
  if (rows.empty()) return;
  // Windows overlap, and one may come again that is not the last.
  int64_t begin = INT64_MAX;
  if (rows_.shape().by_window) {
    begin = std::max_element(rows.begin(), rows.end(), [](const auto& one, const auto& other) {
              return one.begin_ns < other.begin_ns;
            })->begin_ns;
  }
  std::erase_if(last_, [begin](const auto& each) { return each.second.end_ns <= begin; });
  if (rows_.shape().by_window) totals_.clear();
  take(std::move(rows));
}

void PrometheusRows::finish(const collect::Losses&) {
  if (rows_.has_rows()) end_interval({.number = 1});
  take(rows_.finish());
}

void PrometheusRows::take(std::vector<MetricRow> rows) {
  for (MetricRow& row : rows) {
    const std::string key = rows_.labels_key(row.values);
    const bool is_known = totals_.contains(key);
    if (!is_known && totals_.size() >= kSeriesMax) {
      ++left_out_;
      continue;
    }
    const auto [total, is_new] = totals_.try_emplace(key, row.values);
    for (const MetricColumn& metric : rows_.shape().metrics) {
      if (!is_new && metric.kind != MetricKind::Gauge)
        add_metric(total->second[metric.column], row.values[metric.column]);
    }
    const auto last = last_.find(key);
    if (last == last_.end() || last->second.end_ns <= row.end_ns) last_[key] = std::move(row);
  }
}

std::string PrometheusRows::text() const {
  PrometheusText counters(query_, PrometheusText::Metrics::Counters);
  PrometheusText gauges(query_, PrometheusText::Metrics::Gauges);
  counters.begin(rows_.columns(), RowMode::Table);
  gauges.begin(rows_.columns(), RowMode::Table);
  for (const auto& [key, row] : totals_)
    counters.row(row);
  for (const auto& [key, row] : last_)
    gauges.row(row.values);
  std::string text = counters.text() + gauges.text();
  if (left_out_ != 0) {
    const std::string name = fmt::format("clew_{}_rows_left_out_total", metric_name(query_));
    text +=
        fmt::format("# HELP {} Rows of more label sets than are shown.\n# TYPE {} counter\n{} {}\n",
                    name, name, name, left_out_);
  }
  return text;
}

}  // namespace clew::output
