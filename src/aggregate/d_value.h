// SPDX-License-Identifier: Apache-2.0
// What an aggregating function of D holds for one key: words, as abi/machine/window.h lays them out
// without the word that counts updates; how two merge, what number or histogram they mean, how two
// are ordered. A query's cells are in aggregate/function.h; one that was counted in the D machine's
// tables is read out of them here.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "aggregate/function.h"
#include "aggregate/value.h"

namespace clew::aggregate {

struct DValue {
  AggregateFunction function = AggregateFunction::Count;
  std::span<const uint64_t> cells;      // abi::machine_cell_words() of them.
  std::span<const int64_t> parameters;  // lquantize, llquantize: those of the aggregation.
  int64_t divisor = 1;                  // normalize(); never 0.
};

// quantize and its kin are drawn; all others are a number.
bool is_distribution(AggregateFunction function);
int64_t number_of(const DValue& value);
// All buckets in ascending order. Counts are signed: D adds weights to them, and they are not
// divided.
Histogram histogram_of(const DValue& value);
// As normalize() does: wraps where the result is too large.
int64_t divide(int64_t value, int64_t divisor);

// Adds what was counted later to `cells`. Of min and max, both sides must have been updated, or
// hold what any value replaces.
void merge_cells(AggregateFunction function, std::span<const uint64_t> newer,
                 std::span<uint64_t> cells);

// What values are sorted by; normalize() does not matter. Exact: a long double holds 64 bits.
struct SortValue {
  long double value = 0;    // Of distributions, the weighted sum of their buckets.
  long double at_zero = 0;  // Of distributions, the weight of the bucket of 0, which adds nothing.
  auto operator<=>(const SortValue&) const = default;
};
SortValue sort_value_of(const DValue& value);

// `cell` has cell_words(spec) words of 0: they become what `counted` says, cells that the D machine
// counted for spec.function in its kernel form (abi::AggregateRow). `bucket`: the last word of the
// key, where it has one; less than the buckets of the function.
void read_cells(const AggregateSpec& spec, std::span<uint64_t> cell,
                std::span<const uint64_t> counted, uint64_t bucket);

}  // namespace clew::aggregate
