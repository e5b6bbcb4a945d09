// SPDX-License-Identifier: Apache-2.0
// What one aggregating function does, for queries and for D: beside its facts in abi/aggregate.h.
// The file of the function has it. Private to the folder: others use aggregate/function.h and
// aggregate/d_value.h.
#pragma once

#include <cstdint>
#include <span>

#include "aggregate/function.h"

namespace clew::aggregate {

using Cell = std::span<uint64_t>;
using ConstCell = std::span<const uint64_t>;

// What is different in the tables of the D machine (abi/machine/tables.h), and in what D makes of
// their cells. These come without the word of updates. Null: as queries have it, if nothing else is
// said.
struct DForm {
  // Adds one of its cells to an empty one of a query; `bucket`: the end of its key, where it has
  // one. Null: the words are the same.
  void (*read)(Cell, ConstCell counted, uint64_t bucket) = nullptr;
  void (*merge)(Cell into, ConstCell from) = nullptr;
  int64_t (*number)(ConstCell, int64_t divisor) = nullptr;  // Null: the first word, divided.
  long double (*order)(ConstCell) = nullptr;                // Null: the number.
  Value (*finish)(const AggregateSpec&, ConstCell) = nullptr;
};

struct Operations {
  uint32_t words = 0;  // Of a cell; 0: as words_of says.
  uint64_t (*words_of)(const AggregateSpec&) = nullptr;
  ColumnType result = ColumnType::Integer;  // Integer: as the values are.
  bool is_approximate = false;
  void (*add)(const AggregateSpec&, Cell, uint64_t value) = nullptr;
  void (*merge)(const AggregateSpec&, Cell into, ConstCell from) = nullptr;
  void (*subtract)(Cell from, ConstCell earlier) = nullptr;  // Null: not subtractable.
  Value (*finish)(const AggregateSpec&, ConstCell) = nullptr;
  const Operations* real = nullptr;  // Of floating-point values; null where there are none.
  DForm d{};
};

extern const Operations kCount;
extern const Operations kSum;
extern const Operations kMin;
extern const Operations kMax;
extern const Operations kAverage;
extern const Operations kStandardDeviation;
extern const Operations kVariance;
extern const Operations kQuantize;
extern const Operations kLquantize;
extern const Operations kLlquantize;
extern const Operations kDistinct;
extern const Operations kTopK;
extern const Operations kQuantile;
extern const Operations kRealSum;
extern const Operations kRealMin;
extern const Operations kRealMax;
extern const Operations kRealAverage;
extern const Operations kRealStandardDeviation;
extern const Operations kRealVariance;

// Those of integers.
const Operations& operations_of(AggregateFunction function);

// For cells of which every word is a sum mod 2^64.
void merge_sums(const AggregateSpec&, Cell into, ConstCell from);
void subtract_sums(Cell from, ConstCell earlier);

// The 64 bits as an integer value, scaled and rounded to the nearest when scale is not 1. A result
// out of range is clamped.
Value scaled_integer(const AggregateSpec& spec, uint64_t bits);
// The 64 bits as a number, by the signedness of the spec.
double as_double(const AggregateSpec& spec, uint64_t bits);

}  // namespace clew::aggregate
