// SPDX-License-Identifier: Apache-2.0
// lquantize(x, low, high, step): how many values in each step of a linear scale.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint64_t words_of_linear(const AggregateSpec& spec) {
  return abi::linear_buckets(linear_of(spec));
}

void add_to_linear(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[abi::linear_bucket(linear_of(spec), static_cast<int64_t>(value))];
}

Value finish_linear(const AggregateSpec& spec, ConstCell cell) {
  Histogram histogram{.kind = HistogramKind::Lquantize, .buckets = {}};
  histogram.buckets.push_back({.low = spec.low, .edge = BucketEdge::Below, .count = cell[0]});
  for (size_t i = 1; i < cell.size(); ++i)
    histogram.buckets.push_back({.low = abi::linear_value(linear_of(spec), i), .count = cell[i]});
  histogram.buckets.back().edge = BucketEdge::AtLeast;
  return histogram;
}

}  // namespace

const Operations kLquantize = {.words_of = words_of_linear,
                               .result = ColumnType::Histogram,
                               .add = add_to_linear,
                               .merge = merge_sums,
                               .subtract = subtract_sums,
                               .finish = finish_linear};

}  // namespace clew::aggregate
