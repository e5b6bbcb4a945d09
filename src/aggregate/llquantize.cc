// SPDX-License-Identifier: Apache-2.0
// llquantize(x, factor, low, high, steps): linear steps within each power of `factor`.
#include "aggregate/buckets.h"
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

LogLinearBuckets buckets_of(const AggregateSpec& spec) {
  return {.factor = spec.factor,
          .low = static_cast<uint32_t>(spec.low),
          .high = static_cast<uint32_t>(spec.high),
          .steps = spec.steps};
}

uint32_t words(const AggregateSpec& spec) {
  return llquantize_words(buckets_of(spec));
}

void add_value(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[llquantize_bucket(buckets_of(spec), static_cast<int64_t>(value))];
}

void push_magnitude(Histogram& histogram, const LogLinearMagnitude& magnitude, ConstCell cell) {
  for (uint32_t i = 0; i < magnitude.count; ++i) {
    const uint64_t low = magnitude.from + i * magnitude.width;
    histogram.buckets.push_back(
        {.low = static_cast<int64_t>(low), .count = cell[magnitude.first + i]});
  }
}

Value finish_histogram(const AggregateSpec& spec, ConstCell cell) {
  const LogLinearBuckets buckets = buckets_of(spec);
  Histogram histogram{.kind = HistogramKind::Llquantize, .buckets = {}};
  LogLinearMagnitude magnitude = first_magnitude(buckets);
  histogram.buckets.push_back(
      {.low = static_cast<int64_t>(magnitude.from), .edge = BucketEdge::Below, .count = cell[0]});
  push_magnitude(histogram, magnitude, cell);
  for (uint32_t m = buckets.low; m < buckets.high; ++m) {
    magnitude = next_magnitude(buckets, magnitude);
    push_magnitude(histogram, magnitude, cell);
  }
  histogram.buckets.push_back({.low = static_cast<int64_t>(magnitude.until),
                               .edge = BucketEdge::AtLeast,
                               .count = cell.back()});
  return histogram;
}

constexpr Operations kOperations = {words, add_value, merge_sums, subtract_sums, finish_histogram};

}  // namespace

const Operations& llquantize_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
