// SPDX-License-Identifier: Apache-2.0
// The aggregating functions. The state of one is a cell: a few 8-byte words in a region, updated by
// a probe program, copied by the collector, merged over threads, processes and nodes, and finished
// into a Value.
//
// Laws, for every function (tested with random data):
//   - the all-zero cell is the identity of merge (fresh memory is ready to count);
//   - merge is associative and commutative;
//   - merging the cells of the parts of a stream gives the cell of the whole stream.
// `add` here is the meaning; the programs that src/plan makes must leave the same words. The exact
// bucket arithmetic is in abi/buckets.h.
//
//   function           words  layout of the cell
//   Count              1      count
//   Sum                1      sum mod 2^64
//   Min, Max           2      value, present (0 or 1; write value first)
//   Average            2      count, sum mod 2^64
//   StandardDeviation, 4      count, sum mod 2^64, sum of squares: low word, high word
//   Variance
//   Quantize           128    count by bucket: quantize_bucket(value)
//   Lquantize          n + 2  count by bucket: below low, n steps, from high on
//   Llquantize         …      count by bucket: below, the steps of each magnitude, from the top on
//   Distinct           128    1024 one-byte registers: HyperLogLog, see distinct_update
//   Quantile           976    count by bucket: quantile_bucket(value)
//   Sum is_real        1      sum
//   Min, Max is_real   2      value, present
//   Average,           3      count, mean, sum of squared distances from it
//   StandardDeviation,
//   Variance is_real
//   TopK               1      count; its value is part of the key (see Table::fold_top)
#pragma once

#include <cstdint>
#include <span>

#include "abi/aggregate.h"
#include "abi/buckets.h"
#include "aggregate/value.h"
#include "base/error.h"

namespace clew::aggregate {

using abi::AggregateFunction;

struct AggregateSpec {
  AggregateFunction function = AggregateFunction::Count;
  bool is_signed = true;  // How the 64 bits of a value are read.
  // The 64 bits are those of a double: Sum, Min, Max, Average, StandardDeviation,
  // Variance. Such cells are the tracer's; probes have none.
  bool is_real = false;
  Unit unit = Unit::None;
  // Finished = counted * scale (Variance: * scale^2), for Sum, Min, Max, Average,
  // StandardDeviation, Variance, Quantile: lets programs count time in ticks. The result of a
  // scaled integer is rounded. 1 = exact.
  double scale = 1.0;
  // Lquantize: low, high, step. Llquantize: the magnitudes low and high are powers of `factor`, and
  // each magnitude has `steps` steps.
  int64_t low = 0;
  int64_t high = 0;
  int64_t step = 1;
  uint32_t factor = 10;
  uint32_t steps = 10;
  double quantile = 0.5;    // Quantile: 0 to 1.
  uint32_t count_max = 10;  // TopK: how many.
  bool operator==(const AggregateSpec&) const = default;
};

inline constexpr uint32_t kCellWordsMax = 4096;

// The bounds of lquantize() and llquantize().
constexpr abi::LinearBuckets linear_of(const AggregateSpec& spec) {
  return {.low = spec.low, .high = spec.high, .step = spec.step};
}
constexpr abi::LogLinearBuckets log_linear_of(const AggregateSpec& spec) {
  return {.factor = spec.factor,
          .low = static_cast<uint64_t>(spec.low),
          .high = static_cast<uint64_t>(spec.high),
          .steps = spec.steps};
}

// InvalidQuery when the parameters make no sense, Limit when the cell is larger than kCellWordsMax
// words. The functions below demand a checked spec.
Expected<void> check(const AggregateSpec& spec);

[[nodiscard]] uint32_t cell_words(const AggregateSpec& spec);
// The type of the finished value and whether it is approximate.
[[nodiscard]] ColumnType result_type(const AggregateSpec& spec);
[[nodiscard]] bool approximate(const AggregateSpec& spec);
// Whether the finished values of several groups may be added up.
constexpr bool adds_up(AggregateFunction function) {
  return function == AggregateFunction::Count || function == AggregateFunction::Sum;
}
// True when every word is a plain sum: the cell of an interval is the difference of two reads.
[[nodiscard]] bool subtractable(const AggregateSpec& spec);

// `cell` and `from` have cell_words(spec) words. `value` has the bits of the value. The histograms
// with chosen bounds (lquantize, llquantize) read it as signed.
void add(const AggregateSpec& spec, std::span<uint64_t> cell, uint64_t value);
// Distinct of a value of several words (a string): `hash` is hash_words of them. For one word it is
// the same as `add`.
void add_distinct(std::span<uint64_t> cell, uint64_t hash);
void merge(const AggregateSpec& spec, std::span<uint64_t> into, std::span<const uint64_t> from);
// Only when subtractable.
void subtract(const AggregateSpec& spec, std::span<uint64_t> from,
              std::span<const uint64_t> earlier);
[[nodiscard]] Value finish(const AggregateSpec& spec, std::span<const uint64_t> cell);

}  // namespace clew::aggregate
