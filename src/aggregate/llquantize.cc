// SPDX-License-Identifier: Apache-2.0
// llquantize(x, factor, low, high, steps): linear steps within each power of `factor`.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint32_t words(const AggregateSpec& spec) {
  return static_cast<uint32_t>(abi::one_sided_buckets(log_linear_of(spec)));
}

void add_value(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[abi::one_sided_bucket(log_linear_of(spec), static_cast<int64_t>(value))];
}

Value finish_histogram(const AggregateSpec& spec, ConstCell cell) {
  Histogram histogram{.kind = HistogramKind::Llquantize, .buckets = {}};
  histogram.buckets.push_back({.edge = BucketEdge::Below, .count = cell[0]});
  uint64_t end = 0;
  const auto push_order = [&](uint64_t first, uint64_t next, uint64_t width, uint64_t before) {
    if (before == 0) histogram.buckets[0].low = static_cast<int64_t>(first);
    for (uint64_t low = first; low < next; low += width)
      histogram.buckets.push_back({.low = static_cast<int64_t>(low), .count = cell[++before]});
    end = next;
    return true;
  };
  abi::each_order(log_linear_of(spec), 0, push_order);
  histogram.buckets.push_back(
      {.low = static_cast<int64_t>(end), .edge = BucketEdge::AtLeast, .count = cell.back()});
  return histogram;
}

constexpr Operations kOperations = {words, add_value, merge_sums, subtract_sums, finish_histogram};

}  // namespace

const Operations& llquantize_operations() {
  return kOperations;
}

}  // namespace clew::aggregate
