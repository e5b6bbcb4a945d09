// SPDX-License-Identifier: Apache-2.0
// count(): how many. topk(x, k): the k most frequent values. The value is a part of the key of a
// table and this cell its count; Table::fold_top picks the largest ones, on the host, where all
// counts have come together.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

void add_one(const AggregateSpec&, Cell cell, uint64_t) {
  ++cell[0];
}

Value finish_count(const AggregateSpec&, ConstCell cell) {
  return cell[0];
}

}  // namespace

const Operations kCount = {.words = 1,
                           .result = ColumnType::Unsigned,
                           .add = add_one,
                           .merge = merge_sums,
                           .subtract = subtract_sums,
                           .finish = finish_count};

const Operations kTopK = {.words = 1,
                          .result = ColumnType::TopList,
                          .add = add_one,
                          .merge = merge_sums,
                          .subtract = subtract_sums,
                          .finish = finish_count};

}  // namespace clew::aggregate
