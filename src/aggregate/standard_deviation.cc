// SPDX-License-Identifier: Apache-2.0
// stddev(x) and variance(x): of the whole population, from the 128-bit sum of squares, as DTrace
// does. Values that are scaled give a variance that is scaled twice.
//
//     word 0  count    word 1  sum    word 2  low half of the sum of squares    word 3  high half
//
// A program squares |v| = a * 2^32 + b as a^2 * 2^64 + 2ab * 2^32 + b^2 and carries by comparing.
#include <cmath>

#include "aggregate/d_value.h"
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using Integer = __int128;

Wide squares_of(ConstCell cell) {
  return static_cast<Wide>(cell[3]) << 64 | cell[2];
}

void set_squares(Cell cell, Wide squares) {
  cell[2] = static_cast<uint64_t>(squares);
  cell[3] = static_cast<uint64_t>(squares >> 64);
}

void add_to_deviation(const AggregateSpec& spec, Cell cell, uint64_t value) {
  const bool negative = spec.is_signed && (value >> 63) != 0;
  const Wide magnitude = negative ? 0 - value : value;
  ++cell[0];
  cell[1] += value;
  set_squares(cell, squares_of(cell) + magnitude * magnitude);
}

void merge_deviations(const AggregateSpec&, Cell into, ConstCell from) {
  into[0] += from[0];
  into[1] += from[1];
  set_squares(into, squares_of(into) + squares_of(from));
}

void subtract_cells(Cell from, ConstCell earlier) {
  from[0] -= earlier[0];
  from[1] -= earlier[1];
  set_squares(from, squares_of(from) - squares_of(earlier));
}

// Sums of squares of large values that lie close together would cancel, so the squares of distances
// from the integer next to the mean are summed: of integers, exact while they fit 128 bits.
long double variance_of(const AggregateSpec& spec, ConstCell cell) {
  const auto count = static_cast<Integer>(cell[0]);
  const Integer sum = spec.is_signed ? static_cast<Integer>(static_cast<int64_t>(cell[1]))
                                     : static_cast<Integer>(cell[1]);
  const Integer middle = sum / count;
  const Integer rest = sum - middle * count;
  const auto near = static_cast<Wide>(middle);
  const Wide squares =
      squares_of(cell) - 2 * near * static_cast<Wide>(sum) + static_cast<Wide>(count) * near * near;
  const auto shift = static_cast<long double>(rest) / static_cast<long double>(count);
  const long double variance =
      static_cast<long double>(squares) / static_cast<long double>(count) - shift * shift;
  return variance > 0 ? variance : 0;
}

Value finish_deviation(const AggregateSpec& spec, ConstCell cell) {
  if (cell[0] == 0) return {};
  return static_cast<double>(std::sqrt(variance_of(spec, cell))) * spec.scale;
}

Value finish_variance(const AggregateSpec& spec, ConstCell cell) {
  if (cell[0] == 0) return {};
  return static_cast<double>(variance_of(spec, cell)) * spec.scale * spec.scale;
}

// --- as D has it: sqrt(average(x^2) - average(x)^2), each average cut to an integer --------------

uint64_t magnitude_of(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
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

// The squares are divided by the square of the divisor.
uint64_t cut_deviation(ConstCell cell, int64_t divisor) {
  const uint64_t count = cell[0];
  if (count == 0) return 0;
  const Wide scale = magnitude_of(divisor);
  const Wide squares = squares_of(cell) / scale / scale / count;
  const int64_t sum = divide(static_cast<int64_t>(cell[1]), divisor);
  const Wide average = magnitude_of(divide(sum, static_cast<int64_t>(count)));
  return squares > average * average ? square_root(squares - average * average) : 0;
}

int64_t d_number(ConstCell cell, int64_t divisor) {
  return static_cast<int64_t>(cut_deviation(cell, divisor));
}

long double d_order_of_deviation(ConstCell cell) {
  return static_cast<long double>(cut_deviation(cell, 1));
}

}  // namespace

const Operations kStandardDeviation = {.words = 4,
                                       .result = ColumnType::Float,
                                       .add = add_to_deviation,
                                       .merge = merge_deviations,
                                       .subtract = subtract_cells,
                                       .finish = finish_deviation,
                                       .real = &kRealStandardDeviation,
                                       .d = {.number = d_number, .order = d_order_of_deviation}};

const Operations kVariance = {.words = 4,
                              .result = ColumnType::Float,
                              .add = add_to_deviation,
                              .merge = merge_deviations,
                              .subtract = subtract_cells,
                              .finish = finish_variance,
                              .real = &kRealVariance};

}  // namespace clew::aggregate
