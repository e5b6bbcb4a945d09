// SPDX-License-Identifier: Apache-2.0
// What one aggregating function consists of; one file per function makes one. Private to the
// folder: others use aggregate/function.h.
#pragma once

#include <cstdint>
#include <span>

#include "aggregate/function.h"

namespace clew::aggregate {

using Cell = std::span<uint64_t>;
using ConstCell = std::span<const uint64_t>;

struct Operations {
  uint32_t (*words)(const AggregateSpec&);
  void (*add)(const AggregateSpec&, Cell, uint64_t value);
  void (*merge)(const AggregateSpec&, Cell into, ConstCell from);
  void (*subtract)(Cell from, ConstCell earlier);  // Null: not subtractable.
  Value (*finish)(const AggregateSpec&, ConstCell);
};

const Operations& count_operations();
const Operations& sum_operations();
const Operations& min_operations();
const Operations& max_operations();
const Operations& average_operations();
const Operations& standard_deviation_operations();
const Operations& variance_operations();
const Operations& quantize_operations();
const Operations& lquantize_operations();
const Operations& llquantize_operations();
const Operations& distinct_operations();
const Operations& quantile_operations();
const Operations& top_operations();
// Of floating-point values; null where there are none.
const Operations* real_operations(AggregateFunction function);

// For cells of which every word is a sum mod 2^64.
void merge_sums(const AggregateSpec&, Cell into, ConstCell from);
void subtract_sums(Cell from, ConstCell earlier);

// The 64 bits as an integer value, scaled and rounded to the nearest when scale is not 1. A result
// out of range is clamped.
Value scaled_integer(const AggregateSpec& spec, uint64_t bits);
// The 64 bits as a number, by the signedness of the spec.
double as_double(const AggregateSpec& spec, uint64_t bits);

}  // namespace clew::aggregate
