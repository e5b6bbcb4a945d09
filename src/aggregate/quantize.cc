// SPDX-License-Identifier: Apache-2.0
// quantize(x): how many values in each power of two, with DTrace's buckets.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec&) {
  return abi::kQuantizeBuckets;
}

void add_value(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[abi::quantize_bucket(value, spec.is_signed)];
}

Value finish_histogram(const AggregateSpec&, ConstCell cell) {
  Histogram histogram{.kind = HistogramKind::Quantize, .buckets = {}};
  histogram.buckets.reserve(abi::kQuantizeBuckets);
  for (uint32_t i = 0; i < abi::kQuantizeBuckets; ++i)
    histogram.buckets.push_back({.low = abi::quantize_value(i), .count = cell[i]});
  histogram.buckets.back().edge = BucketEdge::FromUnsigned;
  return histogram;
}

constexpr Operations kOperations = {words, add_value, merge_sums, subtract_sums, finish_histogram};

}  // namespace

const Operations& quantize_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
