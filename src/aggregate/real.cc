// SPDX-License-Identifier: Apache-2.0
// sum, min, max, avg, stddev and variance of floating-point values. Words that are not counts hold
// the bits of doubles, so a cell of zeros is still empty. A sum depends on the order of its parts
// in the last digits; a value that is no number makes a sum none, and is passed over by min and
// max.
#include <bit>
#include <cmath>

#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

double real(uint64_t bits) {
  return std::bit_cast<double>(bits);
}
uint64_t bits(double value) {
  return std::bit_cast<uint64_t>(value);
}

void add_sum(const AggregateSpec&, Cell cell, uint64_t value) {
  cell[0] = bits(real(cell[0]) + real(value));
}
void merge_sum(const AggregateSpec& spec, Cell into, ConstCell from) {
  add_sum(spec, into, from[0]);
}
Value finish_real_sum(const AggregateSpec& spec, ConstCell cell) {
  return real(cell[0]) * spec.scale;
}

// Words: value, present.
template <bool kLargest>
void add_extreme(const AggregateSpec&, Cell cell, uint64_t value) {
  const double x = real(value);
  if (std::isnan(x)) return;
  const bool better = kLargest ? x > real(cell[0]) : x < real(cell[0]);
  if (cell[1] == 0 || better) cell[0] = value;
  cell[1] = 1;
}
template <bool kLargest>
void merge_extreme(const AggregateSpec& spec, Cell into, ConstCell from) {
  if (from[1] != 0) add_extreme<kLargest>(spec, into, from[0]);
}
Value finish_extreme(const AggregateSpec& spec, ConstCell cell) {
  return cell[1] == 0 ? Value() : real(cell[0]) * spec.scale;
}

// Words: count, mean, sum of squared distances from the mean. Merged as in Chan, Golub, LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances" (1979): squares that
// are summed first and subtracted later would cancel.
void merge_moments(const AggregateSpec&, Cell into, ConstCell from) {
  if (from[0] == 0) return;
  const auto mine = static_cast<double>(into[0]);
  const auto theirs = static_cast<double>(from[0]);
  const double all = mine + theirs;
  const double distance = real(from[1]) - real(into[1]);
  into[0] += from[0];
  into[1] = bits(real(into[1]) + distance * theirs / all);
  into[2] = bits(real(into[2]) + real(from[2]) + distance * distance * mine * theirs / all);
}
void add_moment(const AggregateSpec& spec, Cell cell, uint64_t value) {
  const uint64_t one[] = {1, value, bits(0.0)};
  merge_moments(spec, cell, one);
}
Value finish_mean(const AggregateSpec& spec, ConstCell cell) {
  return cell[0] == 0 ? Value() : real(cell[1]) * spec.scale;
}
Value finish_real_deviation(const AggregateSpec& spec, ConstCell cell) {
  if (cell[0] == 0) return {};
  return std::sqrt(real(cell[2]) / static_cast<double>(cell[0])) * spec.scale;
}
Value finish_real_variance(const AggregateSpec& spec, ConstCell cell) {
  if (cell[0] == 0) return {};
  return real(cell[2]) / static_cast<double>(cell[0]) * spec.scale * spec.scale;
}

constexpr Operations moments(Value (*finish)(const AggregateSpec&, ConstCell)) {
  return {.words = 3,
          .result = ColumnType::Float,
          .add = add_moment,
          .merge = merge_moments,
          .finish = finish};
}

template <bool kLargest>
constexpr Operations extreme() {
  return {.words = 2,
          .result = ColumnType::Float,
          .add = add_extreme<kLargest>,
          .merge = merge_extreme<kLargest>,
          .finish = finish_extreme};
}

}  // namespace

// None can be subtracted: differences of doubles are not what was added between.
const Operations kRealSum = {.words = 1,
                             .result = ColumnType::Float,
                             .add = add_sum,
                             .merge = merge_sum,
                             .finish = finish_real_sum};
const Operations kRealMin = extreme<false>();
const Operations kRealMax = extreme<true>();
const Operations kRealAverage = moments(finish_mean);
const Operations kRealStandardDeviation = moments(finish_real_deviation);
const Operations kRealVariance = moments(finish_real_variance);

}  // namespace clew::aggregate
