// SPDX-License-Identifier: Apache-2.0
// avg(x): the arithmetic mean.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec&) {
  return 2;
}

void add_value(const AggregateSpec&, Cell cell, uint64_t value) {
  ++cell[0];
  cell[1] += value;
}

Value finish_average(const AggregateSpec& spec, ConstCell cell) {
  if (cell[0] == 0) return {};
  return as_double(spec, cell[1]) / static_cast<double>(cell[0]) * spec.scale;
}

constexpr Operations kOperations = {words, add_value, merge_sums, subtract_sums, finish_average};

}  // namespace

const Operations& average_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
