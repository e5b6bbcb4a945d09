// SPDX-License-Identifier: Apache-2.0
// topk(x, k): the k most frequent values. The value is a part of the key of a table and this cell
// its count; Table::fold_top picks the largest ones, on the host, where all counts have come
// together.
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

const Operations& top_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
