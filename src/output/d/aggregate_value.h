// SPDX-License-Identifier: Apache-2.0
// What an aggregating function holds for one key: words, as abi/d_window.h lays them out without
// the word that counts updates; what number they mean, how two are ordered, how they are drawn.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "query/d/functions.h"

namespace clew::output::d {

struct AggregateValue {
  abi::AggregateFunction kind = abi::AggregateFunction::Count;
  std::span<const uint64_t> cells;      // abi::d_cell_words() of them.
  std::span<const int64_t> parameters;  // lquantize, llquantize: those of the aggregation.
  int64_t divisor = 1;                  // normalize(); never 0.
};

// Without the word of updates.

// quantize and its kin are drawn; all others are a number.
bool is_distribution(abi::AggregateFunction kind);
int64_t number_of(const AggregateValue& value);
// As normalize() does: wraps where the result is too large.
int64_t divide(int64_t value, int64_t divisor);

// Adds what was counted later to `cells`. Of min and max, both sides must have been updated.
void merge_cells(abi::AggregateFunction kind, std::span<const uint64_t> newer,
                 std::span<uint64_t> cells);

// What values are sorted by; normalize() does not matter. Exact: a long double holds 64 bits.
struct SortValue {
  long double value = 0;    // Of distributions, the weighted sum of their buckets.
  long double at_zero = 0;  // Of distributions, the weight of the bucket of 0, which adds nothing.
  auto operator<=>(const SortValue&) const = default;
};
SortValue sort_value_of(const AggregateValue& value);

// The table, which begins with an empty line. `zooms`: option aggzoom.
void append_distribution(const AggregateValue& value, bool zooms, std::string& out);

// The rows of a distribution: its buckets in ascending order.
struct DistributionRow {
  std::string label;
  long double value = 0;  // That stands for the bucket in weighted sums.
  bool is_zero = false;   // The bucket of 0 itself.
};
std::vector<DistributionRow> distribution_rows(abi::AggregateFunction kind,
                                               std::span<const int64_t> parameters);

}  // namespace clew::output::d
