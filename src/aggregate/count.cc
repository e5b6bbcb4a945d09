// SPDX-License-Identifier: Apache-2.0
// count(): how many.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec&) {
  return 1;
}
void add_one(const AggregateSpec&, Cell cell, uint64_t) {
  ++cell[0];
}
Value finish_count(const AggregateSpec&, ConstCell cell) {
  return cell[0];
}

constexpr Operations kOperations = {words, add_one, merge_sums, subtract_sums, finish_count};

}  // namespace

const Operations& count_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
