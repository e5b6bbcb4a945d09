// SPDX-License-Identifier: Apache-2.0
// quantize(x): how many values in each power of two, with DTrace's buckets.
#include "aggregate/buckets.h"
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec&) {
  return kQuantizeWords;
}

void add_value(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[quantize_bucket(value, spec.is_signed)];
}

// The value that DTrace prints for a bucket: its bound nearest to zero.
Bucket bucket_of(uint32_t index, uint64_t count) {
  if (index < kQuantizeZero) {
    return {.low = -(int64_t{1} << (kQuantizeZero - 1 - index)), .count = count};
  }
  if (index == kQuantizeZero) return {.low = 0, .count = count};
  const uint64_t low = uint64_t{1} << (index - kQuantizeZero - 1);
  const bool large = index == kQuantizeWords - 1;
  return {.low = static_cast<int64_t>(low),
          .edge = large ? BucketEdge::FromUnsigned : BucketEdge::From,
          .count = count};
}

Value finish_histogram(const AggregateSpec&, ConstCell cell) {
  Histogram histogram{.kind = HistogramKind::Quantize, .buckets = {}};
  histogram.buckets.reserve(kQuantizeWords);
  for (uint32_t i = 0; i < kQuantizeWords; ++i)
    histogram.buckets.push_back(bucket_of(i, cell[i]));
  return histogram;
}

constexpr Operations kOperations = {words, add_value, merge_sums, subtract_sums, finish_histogram};

}  // namespace

const Operations& quantize_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
