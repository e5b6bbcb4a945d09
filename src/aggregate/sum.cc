// SPDX-License-Identifier: Apache-2.0
// sum(x): modulo 2^64, as C adds.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

void add_to_sum(const AggregateSpec&, Cell cell, uint64_t value) {
  cell[0] += value;
}

Value finish_sum(const AggregateSpec& spec, ConstCell cell) {
  return scaled_integer(spec, cell[0]);
}

}  // namespace

const Operations kSum = {.words = 1,
                         .result = ColumnType::Integer,
                         .add = add_to_sum,
                         .merge = merge_sums,
                         .subtract = subtract_sums,
                         .finish = finish_sum,
                         .real = &kRealSum};

}  // namespace clew::aggregate
