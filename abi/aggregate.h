// SPDX-License-Identifier: Apache-2.0
// The aggregating functions: of queries and of D, in processes and in the kernel. One row has the
// facts of a function that both languages, the probes and the kernel go by. What a function does
// with its words is said in src/aggregate/function.h, and for D's tables in abi/machine/window.h.
//
// A new function is a name and a row here, its operations in src/aggregate (operations.h), and its
// update in a probe (src/plan/update.cc).
#pragma once

#include <cstdint>

namespace clew::abi {

enum class AggregateFunction : uint32_t {
  Count,
  Sum,
  Min,
  Max,
  Average,
  StandardDeviation,  // Of the whole population, as Variance.
  Quantize,           // Powers of two.
  Lquantize,          // Steps: low, high, step.
  Llquantize,         // Magnitudes in steps: factor, low, high, steps. The last that D has.
  Distinct,           // Estimated number of distinct values.
  TopK,               // The most frequent values.
  Quantile,
  Variance,
};

enum class ValueKind : uint8_t {
  None,
  Integer,        // Of any width and sign; in queries times and addresses as well.
  SignedInteger,  // That fits a signed word.
  Whole,          // Everything but floating-point numbers.
  Number,         // Those as well.
  Any,            // Text, too.
};

struct AggregateRow {
  const char* name;  // As both languages call it.
  ValueKind takes;
  // Of a query, behind the value.
  uint8_t parameters_min;
  uint8_t parameters_max;
  const char* d_prototype;  // Null: D has no such function.
  // The kernel form: what the D machine's tables count for it, in how many words besides the one
  // that counts updates (0: as the bounds say), of which values. The others are counted in the
  // tracer.
  AggregateFunction counted;
  uint8_t d_words;
  ValueKind counted_values;
  // Its cells in queries are large and sparse: there, each bucket that is used is an entry by
  // itself, whose key ends with the bucket.
  bool is_by_bucket = false;
};

inline constexpr AggregateRow kAggregateRows[] = {
    {"count", ValueKind::None, 0, 0, "void()", AggregateFunction::Count, 1, ValueKind::Any},
    {"sum", ValueKind::Number, 0, 0, "void(@)", AggregateFunction::Sum, 1, ValueKind::Whole},
    {"min", ValueKind::Number, 0, 0, "void(@)", AggregateFunction::Min, 1, ValueKind::Integer},
    {"max", ValueKind::Number, 0, 0, "void(@)", AggregateFunction::Max, 1, ValueKind::Integer},
    {"avg", ValueKind::Number, 0, 0, "void(@)", AggregateFunction::Average, 2, ValueKind::Whole},
    {"stddev", ValueKind::Number, 0, 0, "void(@)", AggregateFunction::StandardDeviation, 4,
     ValueKind::SignedInteger},
    {"quantize", ValueKind::Whole, 0, 0, "void(@, [@])", AggregateFunction::Quantize, 127,
     ValueKind::SignedInteger},
    {"lquantize", ValueKind::Whole, 2, 3, "void(@, @, @, [@], [@])", AggregateFunction::Lquantize,
     0, ValueKind::Any},
    {"llquantize", ValueKind::Whole, 4, 4, "void(@, @, @, @, @, [@])",
     AggregateFunction::Llquantize, 0, ValueKind::Any},
    {"distinct", ValueKind::Any, 0, 0, nullptr, AggregateFunction::Max, 1, ValueKind::Any, true},
    {"topk", ValueKind::Any, 1, 1, nullptr, AggregateFunction::Count, 1, ValueKind::Any},
    {"quantile", ValueKind::Whole, 1, 1, nullptr, AggregateFunction::Count, 1, ValueKind::Whole,
     true},
    {"variance", ValueKind::Number, 0, 0, nullptr, AggregateFunction::StandardDeviation, 4,
     ValueKind::SignedInteger}};

inline constexpr uint32_t kAggregateFunctions = sizeof(kAggregateRows) / sizeof(*kAggregateRows);
static_assert(kAggregateFunctions == static_cast<uint32_t>(AggregateFunction::Variance) + 1);

constexpr const AggregateRow& row_of(AggregateFunction function) {
  return kAggregateRows[static_cast<uint32_t>(function)];
}

constexpr const char* name_of(AggregateFunction function) {
  return row_of(function).name;
}

// What a cell of the D machine begins with, so that any value replaces it.
[[gnu::always_inline]] constexpr uint64_t neutral_word(AggregateFunction function) {
  if (function == AggregateFunction::Min) return ~(uint64_t{1} << 63);
  return function == AggregateFunction::Max ? uint64_t{1} << 63 : 0;
}

}  // namespace clew::abi
