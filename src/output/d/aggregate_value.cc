// SPDX-License-Identifier: Apache-2.0
#include "output/d/aggregate_value.h"

#include <algorithm>
#include <limits>

#include "abi/buckets.h"
#include "base/assert.h"

namespace clew::output::d {
namespace {

using abi::AggregateFunction;

__extension__ using Wide = unsigned __int128;

// lquantize() and llquantize() without parameters are never drawn: such an aggregation has no
// cells.
uint64_t magnitude_of(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

Wide wide(uint64_t low, uint64_t high) {
  return (static_cast<Wide>(high) << 64) | low;
}

// The largest number whose square is not above `square`, one bit at a time.
uint64_t square_root(Wide square) {
  uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t candidate = root | (uint64_t{1} << bit);
    if (static_cast<Wide>(candidate) * candidate <= square) root = candidate;
  }
  return root;
}

// sqrt(average(x^2) - average(x)^2), each average cut to an integer. The squares are divided by the
// square of the divisor.
uint64_t deviation(std::span<const uint64_t> cells, int64_t divisor) {
  const uint64_t count = cells[0];
  if (count == 0) return 0;
  const Wide scale = magnitude_of(divisor);
  const Wide squares = wide(cells[2], cells[3]) / scale / scale / count;
  const int64_t sum = divide(static_cast<int64_t>(cells[1]), divisor);
  const Wide average = magnitude_of(divide(sum, static_cast<int64_t>(count)));
  return squares > average * average ? square_root(squares - average * average) : 0;
}

long double average_of(std::span<const uint64_t> cells) {
  if (cells[0] == 0) return 0;
  return static_cast<long double>(static_cast<int64_t>(cells[1])) /
         static_cast<long double>(cells[0]);
}

SortValue sort_value_of_distribution(const AggregateValue& value) {
  const std::vector<DistributionRow> rows = distribution_rows(value.kind, value.parameters);
  CLEW_ASSERT(rows.size() == value.cells.size());
  SortValue result;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto weight = static_cast<long double>(static_cast<int64_t>(value.cells[i]));
    result.value += rows[i].value * weight;
    if (rows[i].is_zero) result.at_zero = weight;
  }
  return result;
}

void merge_extreme(std::span<const uint64_t> newer, std::span<uint64_t> cells, bool is_min) {
  const auto a = static_cast<int64_t>(newer[0]);
  const auto b = static_cast<int64_t>(cells[0]);
  cells[0] = static_cast<uint64_t>(is_min ? std::min(a, b) : std::max(a, b));
}

void merge_deviation(std::span<const uint64_t> newer, std::span<uint64_t> cells) {
  cells[0] += newer[0];
  cells[1] += newer[1];
  const Wide squares = wide(cells[2], cells[3]) + wide(newer[2], newer[3]);
  cells[2] = static_cast<uint64_t>(squares);
  cells[3] = static_cast<uint64_t>(squares >> 64);
}

}  // namespace

int64_t divide(int64_t value, int64_t divisor) {
  if (divisor == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(value));
  return divisor == 0 ? value : value / divisor;
}

bool is_distribution(AggregateFunction kind) {
  return kind == AggregateFunction::Quantize || kind == AggregateFunction::Lquantize ||
         kind == AggregateFunction::Llquantize;
}

int64_t number_of(const AggregateValue& value) {
  if (value.kind == AggregateFunction::StandardDeviation) {
    return static_cast<int64_t>(deviation(value.cells, value.divisor));
  }
  if (value.kind != AggregateFunction::Average) {
    return divide(static_cast<int64_t>(value.cells[0]), value.divisor);
  }
  if (value.cells[0] == 0) return 0;
  const int64_t sum = divide(static_cast<int64_t>(value.cells[1]), value.divisor);
  return divide(sum, static_cast<int64_t>(value.cells[0]));
}

void merge_cells(AggregateFunction kind, std::span<const uint64_t> newer,
                 std::span<uint64_t> cells) {
  CLEW_ASSERT(newer.size() == cells.size());
  if (kind == AggregateFunction::Min || kind == AggregateFunction::Max) {
    merge_extreme(newer, cells, kind == AggregateFunction::Min);
  } else if (kind == AggregateFunction::StandardDeviation) {
    merge_deviation(newer, cells);
  } else {
    for (size_t i = 0; i < cells.size(); ++i)
      cells[i] += newer[i];
  }
}

SortValue sort_value_of(const AggregateValue& value) {
  if (is_distribution(value.kind)) return sort_value_of_distribution(value);
  if (value.kind == AggregateFunction::Average) return {average_of(value.cells)};
  if (value.kind == AggregateFunction::StandardDeviation) {
    return {static_cast<long double>(deviation(value.cells, 1))};
  }
  return {static_cast<long double>(static_cast<int64_t>(value.cells[0]))};
}

}  // namespace clew::output::d
