// SPDX-License-Identifier: Apache-2.0
#include "aggregate/d_value.h"

#include <algorithm>

#include "abi/aggregate.h"
#include "aggregate/operations.h"
#include "base/assert.h"

namespace clew::aggregate {
namespace {

AggregateSpec spec_of(const DValue& value) {
  AggregateSpec spec{.function = value.function};
  const auto& p = value.parameters;
  if (value.function == AggregateFunction::Lquantize) {
    CLEW_ASSERT(p.size() >= 3);
    spec.low = p[0];
    spec.high = p[1];
    spec.step = p[2];
  } else if (value.function == AggregateFunction::Llquantize) {
    CLEW_ASSERT(p.size() >= 4);
    spec.factor = static_cast<uint32_t>(p[0]);
    spec.low = p[1];
    spec.high = p[2];
    spec.steps = static_cast<uint32_t>(p[3]);
  }
  return spec;
}

// The value that stands for a bucket in weighted sums.
long double weight_of(const Bucket& bucket, HistogramKind kind) {
  const auto low = static_cast<long double>(bucket.low);
  switch (bucket.edge) {
    case BucketEdge::From:
    case BucketEdge::FromUnsigned:
    case BucketEdge::UpTo:
      return low;
    case BucketEdge::Below:
      return low - 1;
    case BucketEdge::AtLeast:
      return kind == HistogramKind::Lquantize ? low + 1 : low;
    case BucketEdge::Around:
      return 0;
  }
  return 0;
}

SortValue sort_value_of(const Histogram& histogram) {
  SortValue result;
  for (const Bucket& bucket : histogram.buckets) {
    const auto count = static_cast<long double>(static_cast<int64_t>(bucket.count));
    result.value += weight_of(bucket, histogram.kind) * count;
    const bool is_zero =
        bucket.edge == BucketEdge::Around || (bucket.edge == BucketEdge::From && bucket.low == 0);
    if (is_zero) result.at_zero = count;
  }
  return result;
}

}  // namespace

int64_t divide(int64_t value, int64_t divisor) {
  if (divisor == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(value));
  return divisor == 0 ? value : value / divisor;
}

bool is_distribution(AggregateFunction function) {
  return operations_of(function).result == ColumnType::Histogram;
}

int64_t number_of(const DValue& value) {
  const auto number = operations_of(value.function).d.number;
  if (number != nullptr) return number(value.cells, value.divisor);
  return divide(static_cast<int64_t>(value.cells[0]), value.divisor);
}

Histogram histogram_of(const DValue& value) {
  CLEW_ASSERT(is_distribution(value.function));
  CLEW_ASSERT(value.cells.size() ==
              abi::machine_cell_words(value.function, value.parameters.data()));
  const Operations& operations = operations_of(value.function);
  const auto finish = operations.d.finish != nullptr ? operations.d.finish : operations.finish;
  return std::get<Histogram>(finish(spec_of(value), value.cells));
}

void merge_cells(AggregateFunction function, std::span<const uint64_t> newer,
                 std::span<uint64_t> cells) {
  CLEW_ASSERT(newer.size() == cells.size());
  const Operations& operations = operations_of(function);
  if (operations.d.merge != nullptr) {
    operations.d.merge(cells, newer);
  } else {
    operations.merge({.function = function}, cells, newer);
  }
}

SortValue sort_value_of(const DValue& value) {
  if (is_distribution(value.function)) return sort_value_of(histogram_of(value));
  const auto order = operations_of(value.function).d.order;
  if (order != nullptr) return {order(value.cells)};
  return {static_cast<long double>(static_cast<int64_t>(value.cells[0]))};
}

void read_cells(const AggregateSpec& spec, std::span<uint64_t> cell,
                std::span<const uint64_t> counted, uint64_t bucket) {
  const auto read = operations_of(spec.function).d.read;
  if (read != nullptr) return read(cell, counted, bucket);
  CLEW_ASSERT(counted.size() <= cell.size());
  std::copy(counted.begin(), counted.end(), cell.begin());
}

}  // namespace clew::aggregate
