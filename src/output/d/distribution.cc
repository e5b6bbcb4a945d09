// SPDX-License-Identifier: Apache-2.0
// Tables of quantize(), lquantize() and llquantize(): the value in 16 columns, a bar of 40 for the
// share of all, the count, left-aligned in 9. Weights may be negative: then bars grow to the left.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "abi/buckets.h"
#include "base/assert.h"
#include "output/d/aggregate_value.h"
#include "output/d/padding.h"

namespace clew::output::d {
namespace {

using abi::AggregateFunction;

constexpr size_t kBarWidth = 40;
constexpr long double kZoomedShareMax = 0.95L;

// Inclusive.
struct Rows {
  size_t first;
  size_t last;
};

// The place of the middle, whose neighbours are shown when there is nothing to show.
size_t middle_of(AggregateFunction kind, size_t rows) {
  if (kind == AggregateFunction::Quantize) return abi::kQuantizeZero;
  return kind == AggregateFunction::Llquantize ? rows / 2 : 1;
}

// From one before the first bucket that is not empty to one after the last.
Rows rows_shown(const AggregateValue& value) {
  const auto filled = [](uint64_t count) { return count != 0; };
  const auto& cells = value.cells;
  const auto first = std::find_if(cells.begin(), cells.end(), filled);
  if (first == cells.end()) {
    const size_t middle = middle_of(value.kind, cells.size());
    return {middle - 1, middle + 1};
  }
  const auto after = std::find_if(cells.rbegin(), cells.rend(), filled).base();
  const auto begin = static_cast<size_t>(first - cells.begin());
  const auto end = static_cast<size_t>(after - cells.begin());
  return {begin == 0 ? 0 : begin - 1, std::min(end, cells.size() - 1)};
}

struct Scale {
  long double total = 0;  // What a full bar stands for.
  bool has_positive = false;
  bool has_negative = false;
};

Scale scale_of(const AggregateValue& value, bool zooms) {
  Scale scale;
  for (const uint64_t cell : value.cells) {
    const auto count = static_cast<int64_t>(cell);
    const auto size = std::fabs(static_cast<long double>(count));
    scale.has_positive |= count > 0;
    scale.has_negative |= count < 0;
    scale.total = zooms ? std::max(scale.total, size / kZoomedShareMax) : scale.total + size;
  }
  return scale;
}

size_t bar_length(int64_t count, const Scale& scale, size_t width) {
  if (scale.total == 0) return 0;
  // DTrace computes in float, and so must we for bars that end near one half. Halves go up.
  const auto share = static_cast<float>(std::fabs(static_cast<long double>(count)) *
                                        static_cast<long double>(width) / scale.total);
  return std::min(static_cast<size_t>(std::lround(share)), width);
}

void append_bar(std::string& out, int64_t count, const Scale& scale) {
  if (!scale.has_negative) {
    out += '|';
    append_left(out, std::string(bar_length(count, scale, kBarWidth), '@'), kBarWidth);
    return;
  }
  const size_t half = scale.has_positive ? kBarWidth / 2 : kBarWidth;
  const std::string bar(bar_length(count, scale, half), '@');
  append_right(out, count > 0 ? std::string() : bar, half);
  out += '|';
  if (scale.has_positive) append_left(out, count > 0 ? bar : std::string(), half);
}

std::vector<DistributionRow> quantize_rows() {
  std::vector<DistributionRow> rows;
  for (uint32_t i = 0; i < abi::kDQuantizeBuckets; ++i) {
    const int64_t value = abi::quantize_value(i);
    rows.push_back({fmt::format("{}", value), static_cast<long double>(value), value == 0});
  }
  return rows;
}

std::vector<DistributionRow> linear_rows(const abi::LinearBuckets& linear) {
  const uint64_t end = abi::linear_steps(linear) + 1;
  std::vector<DistributionRow> rows;
  rows.push_back({fmt::format("< {}", linear.low), static_cast<long double>(linear.low) - 1});
  for (uint64_t i = 1; i < end; ++i) {
    const int64_t value = abi::linear_value(linear, i);
    rows.push_back({fmt::format("{}", value), static_cast<long double>(value), value == 0});
  }
  const int64_t last = abi::linear_value(linear, end);
  rows.push_back({fmt::format(">= {}", last), static_cast<long double>(last) + 1});
  return rows;
}

std::vector<DistributionRow> log_linear_rows(const abi::LogLinearBuckets& spec) {
  const uint64_t count = abi::log_linear_buckets(spec);
  std::vector<DistributionRow> rows;
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t value = abi::log_linear_value(spec, i);
    const std::string_view sign = i == 0 ? "<= " : (i + 1 == count ? ">= " : "");
    rows.push_back({fmt::format("{}{}", sign, value), static_cast<long double>(value), value == 0});
  }
  // The middle: everything that is nearer to zero than the first step.
  const int64_t first = abi::log_linear_value(spec, count / 2 + 1);
  rows[count / 2].label = spec.low == 0 ? "0" : fmt::format("abs() < {}", first);
  return rows;
}

}  // namespace

std::vector<DistributionRow> distribution_rows(AggregateFunction kind,
                                               std::span<const int64_t> parameters) {
  if (kind == AggregateFunction::Quantize) return quantize_rows();
  const auto& p = parameters;
  if (kind == AggregateFunction::Lquantize) {
    CLEW_ASSERT(p.size() >= 3);
    return linear_rows({p[0], p[1], p[2]});
  }
  CLEW_ASSERT(kind == AggregateFunction::Llquantize && p.size() >= 4);
  return log_linear_rows({static_cast<uint64_t>(p[0]), static_cast<uint64_t>(p[1]),
                          static_cast<uint64_t>(p[2]), static_cast<uint64_t>(p[3])});
}

void append_distribution(const AggregateValue& value, bool zooms, std::string& out) {
  const std::vector<DistributionRow> rows = distribution_rows(value.kind, value.parameters);
  CLEW_ASSERT(value.cells.size() == rows.size());
  out += fmt::format("\n{:>16} {:>41} {:<9}\n", "value", "------------- Distribution -------------",
                     "count");
  const Scale scale = scale_of(value, zooms);
  const Rows shown = rows_shown(value);
  for (size_t i = shown.first; i <= shown.last; ++i) {
    const auto count = static_cast<int64_t>(value.cells[i]);
    const int64_t divided = divide(count, value.divisor);
    append_right(out, rows[i].label, 16);
    out += ' ';
    append_bar(out, count, scale);
    out += fmt::format(" {:<9}\n", divided);
  }
}

}  // namespace clew::output::d
