// SPDX-License-Identifier: Apache-2.0
// lquantize(x, low, high, step): how many values in each step of a linear scale.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec& spec) {
  return static_cast<uint32_t>(abi::linear_buckets(linear_of(spec)));
}

void add_value(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[abi::linear_bucket(linear_of(spec), static_cast<int64_t>(value))];
}

Value finish_histogram(const AggregateSpec& spec, ConstCell cell) {
  Histogram histogram{.kind = HistogramKind::Lquantize, .buckets = {}};
  histogram.buckets.push_back({.low = spec.low, .edge = BucketEdge::Below, .count = cell[0]});
  const size_t last = cell.size() - 1;
  for (size_t i = 1; i <= last; ++i) {
    const int64_t low = abi::linear_value(linear_of(spec), i);
    const BucketEdge edge = i == last ? BucketEdge::AtLeast : BucketEdge::From;
    histogram.buckets.push_back({.low = low, .edge = edge, .count = cell[i]});
  }
  return histogram;
}

constexpr Operations kOperations = {words, add_value, merge_sums, subtract_sums, finish_histogram};

}  // namespace

const Operations& lquantize_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
