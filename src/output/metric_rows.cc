// SPDX-License-Identifier: Apache-2.0
#include "output/metric_rows.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "output/format.h"
#include "output/names.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Histogram;
using aggregate::Value;

bool is_number(ColumnType type) {
  return type == ColumnType::Integer || type == ColumnType::Unsigned || type == ColumnType::Float ||
         type == ColumnType::Boolean;
}

// Unsigned, where an overflow is defined.
template <typename Number>
Number sum_of(Number one, Number other, bool adds) {
  if constexpr (std::is_floating_point_v<Number>) {
    return adds ? one + other : one - other;
  } else {
    const auto a = static_cast<uint64_t>(one);
    const auto b = static_cast<uint64_t>(other);
    return static_cast<Number>(adds ? a + b : a - b);
  }
}

// Of one type.
void combine_numbers(Value& into, const Value& from, bool adds) {
  if (auto* number = std::get_if<int64_t>(&into)) {
    *number = sum_of(*number, std::get<int64_t>(from), adds);
  } else if (auto* whole = std::get_if<uint64_t>(&into)) {
    *whole = sum_of(*whole, std::get<uint64_t>(from), adds);
  } else if (auto* real = std::get_if<double>(&into)) {
    *real = sum_of(*real, std::get<double>(from), adds);
  } else if (auto* histogram = std::get_if<Histogram>(&into)) {
    const auto& other = std::get<Histogram>(from).buckets;
    for (size_t i = 0; i < std::min(histogram->buckets.size(), other.size()); ++i)
      histogram->buckets[i].count = sum_of(histogram->buckets[i].count, other[i].count, adds);
  }
}

void combine(Value& into, const Value& from, bool adds) {
  if (into.index() == from.index()) {
    combine_numbers(into, from, adds);
  } else if (adds && std::holds_alternative<std::monostate>(into)) {
    into = from;
  }
}

}  // namespace

void add_metric(Value& into, const Value& from) {
  combine(into, from, true);
}

void subtract_metric(Value& into, const Value& from) {
  combine(into, from, false);
}

std::string metric_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::to_string(*whole);
  if (const auto* whole = std::get_if<uint64_t>(&value)) return fmt::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* stack = std::get_if<aggregate::Stack>(&value)) return format_calls(*stack);
  return "";
}

MetricShape metric_shape(Columns columns) {
  MetricShape shape;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    // Among what is counted and what it is grouped by only a version is neither.
    const bool is_version = column.role == ColumnRole::Plain && column.name == "version" &&
                            i + 1 == columns.size() && i > 0 &&
                            columns[i - 1].role != ColumnRole::Plain;
    if (is_version) {
      shape.by_window = true;
    } else if (column.role != ColumnRole::Aggregate) {
      (column.type == ColumnType::Time ? shape.times : shape.labels).push_back(i);
    } else if (column.type == ColumnType::Histogram) {
      shape.metrics.push_back({.column = i, .kind = MetricKind::Histogram});
    } else if (is_number(column.type)) {
      shape.metrics.push_back(
          {.column = i, .kind = column.adds_up ? MetricKind::Sum : MetricKind::Gauge});
    }
  }
  if (!shape.by_window) return shape;
  // Those of windows overlap.
  std::erase_if(shape.metrics,
                [](const MetricColumn& one) { return one.kind == MetricKind::Histogram; });
  for (MetricColumn& one : shape.metrics)
    one.kind = MetricKind::Gauge;
  return shape;
}

Expected<void> check_metrics(std::string_view name, Columns columns) {
  if (!metric_shape(columns).metrics.empty()) return {};
  std::vector<std::string> there;
  for (const Column& column : columns) {
    there.push_back(fmt::format("{} ({}{})", printable(column.name), name_of(column.type),
                                column.role == ColumnRole::Plain ? ", of each event" : ""));
  }
  return fail(ErrorCode::InvalidQuery,
              fmt::format("{} needs a column with numbers that are counted, as count(), sum(), "
                          "max() and quantize() do (no histograms of windows); the answer has {}",
                          name, fmt::join(there, ", ")));
}

// --- rows ----------------------------------------------------------------------------------------

void MetricRows::begin(Columns columns) {
  columns_.assign(columns.begin(), columns.end());
  shape_ = metric_shape(columns);
}

std::string MetricRows::labels_key(const std::vector<Value>& row) const {
  std::string key;
  for (const size_t label : shape_.labels) {
    const std::string text = metric_text(row[label]);
    key += fmt::format("{}:{};", text.size(), text);
  }
  return key;
}

void MetricRows::row(std::span<const Value> values) {
  std::vector<Value> row(values.begin(), values.end());
  if (shape_.by_window) {
    windows_.push_back(std::move(row));
    return;
  }
  const auto [known, is_new] = rows_.try_emplace(labels_key(row), row);
  if (is_new) return;
  // They differ by a time, which is no label.
  for (const MetricColumn& metric : shape_.metrics) {
    Value& value = known->second[metric.column];
    const Value& other = row[metric.column];
    if (metric.kind != MetricKind::Gauge) {
      add_metric(value, other);
    } else if (!std::holds_alternative<std::monostate>(other)) {
      value = other;
    }
  }
}

std::vector<MetricRow> MetricRows::end_interval(const Interval& interval) {
  if (shape_.by_window) return give_windows(interval);
  if (last_ && interval.number <= *last_) {
    correct(interval.number);
    return {};
  }
  last_ = interval.number;
  last_end_ns_ = interval.end_ns;
  std::vector<MetricRow> told;
  for (const auto& [key, row] : rows_) {
    MetricRow& one = told.emplace_back(
        MetricRow{.values = row, .begin_ns = interval.begin_ns, .end_ns = interval.end_ns});
    const auto carried = carried_.find(key);
    if (carried == carried_.end()) continue;
    for (const MetricColumn& metric : shape_.metrics)
      add_metric(one.values[metric.column], carried->second[metric.column]);
    carried_.erase(carried);
  }
  for (auto& [key, row] : std::exchange(carried_, {})) {
    told.push_back(
        {.values = std::move(row), .begin_ns = interval.begin_ns, .end_ns = interval.end_ns});
  }
  keep(interval.number);
  return told;
}

size_t MetricRows::size_of(const std::vector<Value>& row) const {
  size_t size = 0;
  for (const MetricColumn& metric : shape_.metrics) {
    const auto* const histogram = std::get_if<Histogram>(&row[metric.column]);
    size += histogram == nullptr ? 1 : std::max<size_t>(histogram->buckets.size(), 1);
  }
  return size;
}

void MetricRows::keep(uint64_t number) {
  Given given{.number = number, .rows = std::exchange(rows_, {})};
  for (const auto& [key, row] : given.rows)
    given.size += size_of(row);
  kept_ += given.size;
  given_.push_back(std::move(given));
  forget();
}

// Oldest intervals, if there is too much.
void MetricRows::forget() {
  while ((kept_ > kKeptMax || given_.size() > kIntervalsKept) && given_.size() > 1) {
    kept_ -= given_.front().size;
    forgotten_ = given_.front().number;
    given_.pop_front();
  }
}

// Also one that was never told: it began behind others, as of a node that was away.
void MetricRows::correct(uint64_t number) {
  if (forgotten_ && number <= *forgotten_) {
    uncorrected_ += rows_.size() * shape_.metrics.size();
    rows_.clear();
    return;
  }
  // From the back: mostly it is one of the last.
  auto given = given_.end();
  while (given != given_.begin() && std::prev(given)->number >= number)
    --given;
  if (given == given_.end() || given->number != number)
    given = given_.insert(given, {.number = number});
  for (auto& [key, row] : std::exchange(rows_, {}))
    correct_row(*given, key, std::move(row));
  forget();
}

void MetricRows::correct_row(Given& given, const std::string& key, std::vector<Value> row) {
  const auto before = given.rows.find(key);
  const bool is_new = before == given.rows.end();
  std::vector<Value> difference = row;
  for (const MetricColumn& metric : shape_.metrics) {
    Value& value = difference[metric.column];
    const Value told = is_new ? Value{} : before->second[metric.column];
    if (metric.kind != MetricKind::Gauge) {
      subtract_metric(value, told);
    } else if (value != told) {
      ++uncorrected_;
    }
  }
  carry(key, difference);
  const size_t size_before = is_new ? 0 : size_of(before->second);
  const size_t size = size_of(row);
  given.size = given.size - size_before + size;
  kept_ = kept_ - size_before + size;
  given.rows.insert_or_assign(key, std::move(row));
}

// Of what does not add up a row that was not there is told no more, either.
void MetricRows::carry(const std::string& key, const std::vector<Value>& row) {
  std::vector<Value> sums = row;
  for (const MetricColumn& metric : shape_.metrics) {
    if (metric.kind == MetricKind::Gauge) sums[metric.column] = std::monostate{};
  }
  const auto [carried, is_new] = carried_.try_emplace(key, sums);
  if (is_new) return;
  for (const MetricColumn& metric : shape_.metrics)
    add_metric(carried->second[metric.column], sums[metric.column]);
}

// Several are given at once where time has jumped. Then a row's own times are all that is known.
std::vector<MetricRow> MetricRows::give_windows(const Interval& interval) {
  std::vector<MetricRow> told;
  const auto times_of = [this](const std::vector<Value>& row) {
    std::vector<int64_t> times;
    for (const size_t column : shape_.times) {
      if (const auto* time = std::get_if<int64_t>(&row[column])) times.push_back(*time);
    }
    return times;
  };
  const bool is_one = std::all_of(windows_.begin(), windows_.end(), [&](const auto& row) {
    return times_of(row) == times_of(windows_.front());
  });
  for (std::vector<Value>& row : std::exchange(windows_, {})) {
    const std::vector<int64_t> times = times_of(row);
    MetricRow one{.begin_ns = interval.begin_ns, .end_ns = interval.end_ns};
    if (!is_one && !times.empty()) {
      one.begin_ns = *std::min_element(times.begin(), times.end());
      one.end_ns = *std::max_element(times.begin(), times.end());
    }
    one.values = std::move(row);
    told.push_back(std::move(one));
  }
  return told;
}

std::vector<MetricRow> MetricRows::finish() {
  std::vector<MetricRow> told;
  for (auto& [key, row] : std::exchange(carried_, {})) {
    told.push_back(
        {.values = std::move(row), .begin_ns = last_end_ns_, .end_ns = last_end_ns_ + 1});
  }
  return told;
}

}  // namespace clew::output
