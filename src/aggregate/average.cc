// SPDX-License-Identifier: Apache-2.0
// avg(x): the arithmetic mean. D divides integers, and sorts by the exact quotient.
#include "aggregate/d_value.h"
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

void add_to_average(const AggregateSpec&, Cell cell, uint64_t value) {
  ++cell[0];
  cell[1] += value;
}

Value finish_average(const AggregateSpec& spec, ConstCell cell) {
  if (cell[0] == 0) return {};
  return as_double(spec, cell[1]) / static_cast<double>(cell[0]) * spec.scale;
}

int64_t d_average(ConstCell cell, int64_t divisor) {
  if (cell[0] == 0) return 0;
  const int64_t sum = divide(static_cast<int64_t>(cell[1]), divisor);
  return divide(sum, static_cast<int64_t>(cell[0]));
}

long double d_order_of_average(ConstCell cell) {
  if (cell[0] == 0) return 0;
  return static_cast<long double>(static_cast<int64_t>(cell[1])) /
         static_cast<long double>(cell[0]);
}

}  // namespace

const Operations kAverage = {.words = 2,
                             .result = ColumnType::Float,
                             .add = add_to_average,
                             .merge = merge_sums,
                             .subtract = subtract_sums,
                             .finish = finish_average,
                             .real = &kRealAverage,
                             .d = {.number = d_average, .order = d_order_of_average}};

}  // namespace clew::aggregate
