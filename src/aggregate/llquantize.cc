// SPDX-License-Identifier: Apache-2.0
// llquantize(x, factor, low, high, steps): linear steps within each power of `factor`. D counts
// negative values in mirrored steps, and what is nearer to zero than all steps in the middle.
#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

uint64_t words_of_log_linear(const AggregateSpec& spec) {
  return abi::one_sided_buckets(log_linear_of(spec));
}

void add_to_log_linear(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[abi::one_sided_bucket(log_linear_of(spec), static_cast<int64_t>(value))];
}

Value finish_log_linear(const AggregateSpec& spec, ConstCell cell) {
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

// All that is below the lowest magnitude, negative numbers included, is one bucket for queries.
void read_d_log_linear(Cell cell, ConstCell counted, uint64_t) {
  const size_t middle = counted.size() / 2;
  for (size_t i = 0; i < counted.size(); ++i)
    cell[i <= middle ? 0 : i - middle] += counted[i];
}

Value finish_d(const AggregateSpec& spec, ConstCell cell) {
  Histogram histogram{.kind = HistogramKind::Llquantize, .buckets = {}};
  const abi::LogLinearBuckets buckets = log_linear_of(spec);
  for (size_t i = 0; i < cell.size(); ++i)
    histogram.buckets.push_back({.low = abi::log_linear_value(buckets, i), .count = cell[i]});
  histogram.buckets.front().edge = BucketEdge::UpTo;
  histogram.buckets.back().edge = BucketEdge::AtLeast;
  const size_t middle = cell.size() / 2;
  if (spec.low != 0) {
    histogram.buckets[middle] = {.low = histogram.buckets[middle + 1].low,
                                 .edge = BucketEdge::Around,
                                 .count = cell[middle]};
  }
  return histogram;
}

}  // namespace

const Operations kLlquantize = {.words_of = words_of_log_linear,
                                .result = ColumnType::Histogram,
                                .add = add_to_log_linear,
                                .merge = merge_sums,
                                .subtract = subtract_sums,
                                .finish = finish_log_linear,
                                .d = {.read = read_d_log_linear, .finish = finish_d}};

}  // namespace clew::aggregate
