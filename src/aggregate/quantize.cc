// SPDX-License-Identifier: Apache-2.0
// quantize(x): how many values in each power of two, with DTrace's buckets.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

void add_to_powers(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[abi::quantize_bucket(value, spec.is_signed)];
}

// D's cells end before the bucket of the largest unsigned values.
Value finish_powers(const AggregateSpec&, ConstCell cell) {
  Histogram histogram{.kind = HistogramKind::Quantize, .buckets = {}};
  histogram.buckets.reserve(cell.size());
  for (uint32_t i = 0; i < cell.size(); ++i)
    histogram.buckets.push_back({.low = abi::quantize_value(i), .count = cell[i]});
  if (cell.size() == abi::kQuantizeBuckets) {
    histogram.buckets.back().edge = BucketEdge::FromUnsigned;
  }
  return histogram;
}

}  // namespace

const Operations kQuantize = {.words = abi::kQuantizeBuckets,
                              .result = ColumnType::Histogram,
                              .add = add_to_powers,
                              .merge = merge_sums,
                              .subtract = subtract_sums,
                              .finish = finish_powers};

}  // namespace clew::aggregate
