// SPDX-License-Identifier: Apache-2.0
// quantile(x, p): the smallest value with at least p of all values at or below it, from a
// log-linear histogram; exact below 32, else within 3.125 % (abi/buckets.h).
#include <algorithm>
#include <cmath>

#include "aggregate/operations.h"
#include "base/assert.h"

namespace clew::aggregate {
namespace {

void add_to_quantile(const AggregateSpec& spec, Cell cell, uint64_t value) {
  ++cell[abi::quantile_bucket(value, spec.is_signed)];
}

// The middle of a bucket.
uint64_t value_of(uint32_t bucket) {
  if (bucket < 16) return bucket;
  const uint32_t shift = (bucket >> 4) - 1;
  const uint64_t low = uint64_t{16 + (bucket & 15)} << shift;
  return low + (shift == 0 ? 0 : uint64_t{1} << (shift - 1));
}

// Nearest rank, 1-based: ceil(p * count), at least 1. A decimal fraction is a little more or less
// in binary (0.07 * 100 > 7), so what is above a whole number by 1e-12 of it does not count.
uint64_t rank_of(double quantile, uint64_t count) {
  const auto exact = static_cast<long double>(quantile) * static_cast<long double>(count);
  const auto rank = static_cast<uint64_t>(std::ceil(exact * (1 - 1e-12L)));
  return std::clamp(rank, uint64_t{1}, count);
}

// The counts of a hostile program may wrap around: then some bucket is reported, which is all that
// can be promised.
Value finish_quantile(const AggregateSpec& spec, ConstCell cell) {
  uint64_t count = 0;
  for (const uint64_t bucket : cell)
    count += bucket;
  if (count == 0) return {};
  uint64_t left = rank_of(spec.quantile, count);
  uint32_t bucket = 0;
  while (bucket + 1 < abi::kQuantileWords && cell[bucket] < left)
    left -= cell[bucket++];
  return scaled_integer(spec, value_of(bucket));
}

void read_d_quantile(Cell cell, ConstCell counted, uint64_t bucket) {
  CLEW_ASSERT(bucket < cell.size());
  cell[bucket] = counted[0];
}

}  // namespace

const Operations kQuantile = {.words = abi::kQuantileWords,
                              .result = ColumnType::Integer,
                              .is_approximate = true,
                              .add = add_to_quantile,
                              .merge = merge_sums,
                              .subtract = subtract_sums,
                              .finish = finish_quantile,
                              .d = {.read = read_d_quantile}};

}  // namespace clew::aggregate
