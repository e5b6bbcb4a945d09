// SPDX-License-Identifier: Apache-2.0
#include "output/chart.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "output/format.h"
#include "output/text_table.h"

namespace clew::output {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Value;

namespace {

constexpr uint32_t kChartBarWidth = 40;

bool is_measure(const Column& column) {
  return column.type == ColumnType::Unsigned || column.type == ColumnType::Integer ||
         column.type == ColumnType::Float;
}

// The first number that was counted; without any, the last number: keys come first in a row.
size_t measure_of(std::span<const Column> columns) {
  const auto counted = std::find_if(columns.begin(), columns.end(), [](const Column& column) {
    return column.role == aggregate::ColumnRole::Aggregate && is_measure(column);
  });
  if (counted != columns.end()) return static_cast<size_t>(counted - columns.begin());
  const auto after_last = std::find_if(columns.rbegin(), columns.rend(), is_measure).base();
  return static_cast<size_t>(after_last - columns.begin()) - 1;
}

double number_of(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&value)) return std::isfinite(*number) ? *number : 0;
  return 0;
}

struct Range {
  double low = 0;   // Of all numbers and 0.
  double high = 0;  // Likewise.
};

// Bars of negative numbers grow to the left from where 0 is, on the same scale as the others.
std::string bar_of(double number, const Range& range) {
  const double whole = range.high - range.low;
  const std::string right = format_bar(number, whole, kChartBarWidth);
  if (!(range.low < 0)) return right;
  const auto halves = [&](double size) {
    return static_cast<uint32_t>(std::lround(size / whole * 2 * kChartBarWidth));
  };
  const uint32_t left_width = (halves(-range.low) + 1) / 2;
  const uint32_t length = halves(std::max(-number, 0.0));
  std::string bar(left_width - (length + 1) / 2, ' ');
  if (length % 2 != 0) bar += "\u2590";  // The right half of a column.
  for (uint32_t i = 0; i < length / 2; ++i)
    bar += "\u2588";
  return bar + "|" + right;
}

}  // namespace

bool can_chart(std::span<const Column> columns) {
  return !has_histogram(columns) && std::any_of(columns.begin(), columns.end(), is_measure);
}

std::string format_chart(std::span<const Column> columns,
                         std::span<const std::vector<Value>> rows) {
  CLEW_ASSERT(can_chart(columns));
  const size_t measure = measure_of(columns);
  Range range;
  for (const auto& row : rows) {
    range.low = std::min(range.low, number_of(row[measure]));
    range.high = std::max(range.high, number_of(row[measure]));
  }

  std::vector<Column> drawn(columns.begin(), columns.end());
  const Column bar_column{.name = "", .type = ColumnType::String};
  drawn.push_back(bar_column);
  TextTable table(drawn);
  std::vector<Cells> lines;
  for (const auto& row : rows) {
    lines.push_back(format_cells(columns, row));
    lines.back().push_back(bar_of(number_of(row[measure]), range));
    table.fit(lines.back());
  }
  std::string text = table.header();
  for (const Cells& cells : lines)
    text += table.line(cells);
  return text;
}

}  // namespace clew::output
