// SPDX-License-Identifier: Apache-2.0
// distinct(x): how many different values, by HyperLogLog (Flajolet et al., 2007) with the
// estimator of Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017,
// algorithm 6), which needs no tables and has no bias between small and large counts.
#include <algorithm>
#include <array>
#include <cmath>

#include "aggregate/hash.h"
#include "aggregate/operations.h"
#include "base/assert.h"

namespace clew::aggregate {
namespace {

// Registers hold 0 to kRankMax: a hash has 54 bits besides the index.
constexpr uint32_t kRankMax = 55;
constexpr double kRegisters = abi::kDistinctRegisters;

uint32_t register_at(ConstCell cell, uint32_t index) {
  return static_cast<uint32_t>(cell[index / 8] >> (index % 8 * 8)) & 0xFF;
}

void raise_register(Cell cell, uint32_t index, uint32_t rank) {
  if (register_at(cell, index) >= rank) return;
  const uint32_t shift = index % 8 * 8;
  cell[index / 8] &= ~(uint64_t{0xFF} << shift);
  cell[index / 8] |= uint64_t{rank} << shift;
}

void add_to_distinct(const AggregateSpec&, Cell cell, uint64_t value) {
  add_distinct(cell, hash_step(kHashSeed, value));
}

void merge_distinct(const AggregateSpec&, Cell into, ConstCell from) {
  for (uint32_t i = 0; i < abi::kDistinctRegisters; ++i)
    raise_register(into, i, register_at(from, i));
}

// sigma(x) = x + sum over k >= 1 of x^(2^k) * 2^(k-1); infinite at 1. Both series converge
// quadratically; the limit is far above what doubles need.
constexpr int kSeriesTermsMax = 64;

double sigma(double x) {
  if (x == 1.0) return HUGE_VAL;
  double factor = 1;
  double sum = x;
  for (int i = 0; i < kSeriesTermsMax; ++i) {
    x *= x;
    const double next = sum + x * factor;
    if (next == sum) break;
    sum = next;
    factor += factor;
  }
  return sum;
}

// tau(x) = 1/3 * (1 - x - sum over k >= 1 of (1 - x^(2^-k))^2 * 2^-k).
double tau(double x) {
  if (x == 0.0 || x == 1.0) return 0;
  double factor = 1;
  double sum = 1 - x;
  for (int i = 0; i < kSeriesTermsMax; ++i) {
    x = std::sqrt(x);
    factor /= 2;
    const double next = sum - (1 - x) * (1 - x) * factor;
    if (next == sum) break;
    sum = next;
  }
  return sum / 3;
}

Value finish_estimate(const AggregateSpec&, ConstCell cell) {
  std::array<uint32_t, kRankMax + 1> histogram{};
  for (uint32_t i = 0; i < abi::kDistinctRegisters; ++i) {
    // A larger rank is not possible, except in memory that the traced program wrote over.
    ++histogram[std::min(register_at(cell, i), kRankMax)];
  }
  double sum = kRegisters * tau(1 - histogram[kRankMax] / kRegisters);
  for (uint32_t rank = kRankMax - 1; rank >= 1; --rank)
    sum = (sum + histogram[rank]) / 2;
  sum += kRegisters * sigma(histogram[0] / kRegisters);
  const double estimate = kRegisters * kRegisters / (2 * std::log(2.0) * sum);
  return static_cast<uint64_t>(std::llround(std::min(estimate, 9e18)));
}

void read_d_distinct(Cell cell, ConstCell counted, uint64_t bucket) {
  CLEW_ASSERT(bucket < abi::kDistinctRegisters);
  cell[bucket / 8] = counted[0] << (bucket % 8 * 8);
}

}  // namespace

void add_distinct(std::span<uint64_t> cell, uint64_t hash) {
  const abi::DistinctUpdate update = abi::distinct_update(hash);
  raise_register(cell, update.register_index, update.rank);
}

const Operations kDistinct = {.words = abi::kDistinctWords,
                              .result = ColumnType::Unsigned,
                              .is_approximate = true,
                              .add = add_to_distinct,
                              .merge = merge_distinct,
                              .finish = finish_estimate,
                              .d = {.read = read_d_distinct}};

}  // namespace clew::aggregate
