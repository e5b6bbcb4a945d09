// SPDX-License-Identifier: Apache-2.0
// min(x), max(x): the smallest and the largest value. Word 1 says that word 0 holds one, so that a
// cell of zeros holds none. D's cells have one signed word, which any value replaces at first.
#include <algorithm>

#include "aggregate/operations.h"

namespace clew::aggregate {
namespace {

template <bool kLargest>
void add_to_extreme(const AggregateSpec& spec, Cell cell, uint64_t value) {
  const uint64_t low = kLargest ? cell[0] : value;
  const uint64_t high = kLargest ? value : cell[0];
  const bool is_better =
      spec.is_signed ? static_cast<int64_t>(low) < static_cast<int64_t>(high) : low < high;
  if (cell[1] == 0 || is_better) cell[0] = value;
  cell[1] = 1;
}

template <bool kLargest>
void merge_extremes(const AggregateSpec& spec, Cell into, ConstCell from) {
  if (from[1] != 0) add_to_extreme<kLargest>(spec, into, from[0]);
}

Value finish_cell(const AggregateSpec& spec, ConstCell cell) {
  return cell[1] == 0 ? Value() : scaled_integer(spec, cell[0]);
}

void read_d_extreme(Cell cell, ConstCell counted, uint64_t) {
  cell[0] = counted[0];
  cell[1] = 1;
}

template <bool kLargest>
void merge_d(Cell into, ConstCell from) {
  const auto a = static_cast<int64_t>(into[0]);
  const auto b = static_cast<int64_t>(from[0]);
  into[0] = static_cast<uint64_t>(kLargest ? std::max(a, b) : std::min(a, b));
}

template <bool kLargest>
constexpr Operations operations(const Operations& real) {
  return {.words = 2,
          .result = ColumnType::Integer,
          .add = add_to_extreme<kLargest>,
          .merge = merge_extremes<kLargest>,
          .finish = finish_cell,
          .real = &real,
          .d = {.read = read_d_extreme, .merge = merge_d<kLargest>}};
}

}  // namespace

const Operations kMin = operations<false>(kRealMin);
const Operations kMax = operations<true>(kRealMax);

}  // namespace clew::aggregate
