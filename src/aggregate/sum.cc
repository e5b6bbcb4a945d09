// SPDX-License-Identifier: Apache-2.0
// sum(x): modulo 2^64, as C adds.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec&) {
  return 1;
}
void add_value(const AggregateSpec&, Cell cell, uint64_t value) {
  cell[0] += value;
}
Value finish_sum(const AggregateSpec& spec, ConstCell cell) {
  return scaled_integer(spec, cell[0]);
}

constexpr Operations kOperations = {words, add_value, merge_sums, subtract_sums, finish_sum};

}  // namespace

const Operations& sum_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
