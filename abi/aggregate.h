// SPDX-License-Identifier: Apache-2.0
// The aggregating functions: of queries and of D, in processes and in the kernel. What each of them
// does with its words is said in src/aggregate/function.h, and for D's tables in abi/d_window.h.
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

// As both languages call it.
constexpr const char* name_of(AggregateFunction function) {
  constexpr const char* kNames[] = {"count",  "sum",      "min",       "max",        "avg",
                                    "stddev", "quantize", "lquantize", "llquantize", "distinct",
                                    "topk",   "quantile", "variance"};
  static_assert(sizeof(kNames) / sizeof(*kNames) ==
                static_cast<uint32_t>(AggregateFunction::Variance) + 1);
  return kNames[static_cast<uint32_t>(function)];
}

}  // namespace clew::abi
