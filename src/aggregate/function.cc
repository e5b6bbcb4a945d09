// SPDX-License-Identifier: Apache-2.0
// The table of the aggregating functions, and what their parameters may be.
#include "aggregate/function.h"

#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "aggregate/operations.h"
#include "base/assert.h"

namespace clew::aggregate {
namespace {

// In the order of AggregateFunction.
constexpr const Operations* kFunctions[] = {
    &kCount,     &kSum,        &kMin,      &kMax,  &kAverage,  &kStandardDeviation, &kQuantize,
    &kLquantize, &kLlquantize, &kDistinct, &kTopK, &kQuantile, &kVariance};
static_assert(std::size(kFunctions) == abi::kAggregateFunctions);

const Operations& operations_for(const AggregateSpec& spec) {
  const Operations& integers = operations_of(spec.function);
  return spec.is_real && integers.real != nullptr ? *integers.real : integers;
}

Expected<void> check_lquantize(const AggregateSpec& spec) {
  if (spec.step <= 0) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("lquantize: the step is {}, but must be positive", spec.step));
  }
  if (spec.low >= spec.high) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("lquantize: the lower bound {} must be less than the upper bound {}",
                            spec.low, spec.high));
  }
  const uint64_t steps = abi::linear_steps(linear_of(spec));
  if (steps == 0) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("lquantize: the step {} is larger than the range {} to {}", spec.step,
                            spec.low, spec.high));
  }
  if (steps > kCellWordsMax - 2) {
    return fail(ErrorCode::Limit, fmt::format("lquantize: {} steps are too many; the limit is {}",
                                              steps, kCellWordsMax - 2));
  }
  return {};
}

Expected<void> check_llquantize_steps(const AggregateSpec& spec) {
  if (!abi::cuts_evenly(log_linear_of(spec))) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("llquantize: {} steps do not divide the powers of {}; use a multiple "
                            "of {} that divides one of its powers",
                            spec.steps, spec.factor, spec.factor));
  }
  const uint64_t buckets = abi::one_sided_buckets(log_linear_of(spec));
  if (buckets > kCellWordsMax) {
    return fail(ErrorCode::Limit,
                fmt::format("llquantize: {} buckets are too many; the limit is {}", buckets,
                            kCellWordsMax));
  }
  return {};
}

Expected<void> check_llquantize(const AggregateSpec& spec) {
  if (spec.factor < 2) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("llquantize: the factor is {}, but must be at least 2", spec.factor));
  }
  if (spec.low < 0 || spec.low > spec.high) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("llquantize: magnitudes {} to {} are not an ascending range from 0 on",
                            spec.low, spec.high));
  }
  if (spec.high >= static_cast<int64_t>(abi::kOrdersMax) || !abi::powers_fit(log_linear_of(spec))) {
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("llquantize: {} to the power of {} does not fit 64 bits", spec.factor,
                    spec.high == std::numeric_limits<int64_t>::max() ? spec.high : spec.high + 1));
  }
  if (spec.steps < spec.factor || spec.steps > kCellWordsMax) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("llquantize: the number of steps is {}, but must be {} to {}",
                            spec.steps, spec.factor, kCellWordsMax));
  }
  return check_llquantize_steps(spec);
}

Expected<void> check_parameters(const AggregateSpec& spec) {
  if (spec.function == AggregateFunction::Lquantize) return check_lquantize(spec);
  if (spec.function == AggregateFunction::Llquantize) return check_llquantize(spec);
  if (spec.function == AggregateFunction::TopK && spec.count_max == 0) {
    return fail(ErrorCode::InvalidQuery, "topk: 0 values were asked for; use at least 1");
  }
  return {};
}

}  // namespace

Expected<void> check(const AggregateSpec& spec) {
  if (!std::isfinite(spec.scale) || spec.scale <= 0) {
    return fail(ErrorCode::InvalidQuery, fmt::format("{}: the scale {} is not positive",
                                                     name_of(spec.function), spec.scale));
  }
  if (!(spec.quantile >= 0.0 && spec.quantile <= 1.0)) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("quantile: {} is not between 0 and 1", spec.quantile));
  }
  return check_parameters(spec);
}

const Operations& operations_of(AggregateFunction function) {
  const auto index = static_cast<size_t>(function);
  CLEW_ASSERT(index < std::size(kFunctions));
  return *kFunctions[index];
}

uint32_t cell_words(const AggregateSpec& spec) {
  const Operations& operations = operations_for(spec);
  return operations.words != 0 ? operations.words
                               : static_cast<uint32_t>(operations.words_of(spec));
}

ColumnType result_type(const AggregateSpec& spec) {
  const ColumnType result = operations_for(spec).result;
  if (result != ColumnType::Integer) return result;
  if (spec.is_real) return ColumnType::Float;
  return spec.is_signed ? ColumnType::Integer : ColumnType::Unsigned;
}

bool approximate(const AggregateSpec& spec) {
  return operations_for(spec).is_approximate;
}

bool subtractable(const AggregateSpec& spec) {
  return operations_for(spec).subtract != nullptr;
}

void add(const AggregateSpec& spec, std::span<uint64_t> cell, uint64_t value) {
  CLEW_ASSERT(cell.size() == cell_words(spec));
  operations_for(spec).add(spec, cell, value);
}

void merge(const AggregateSpec& spec, std::span<uint64_t> into, std::span<const uint64_t> from) {
  CLEW_ASSERT(into.size() == from.size());
  CLEW_ASSERT(into.size() == cell_words(spec));
  operations_for(spec).merge(spec, into, from);
}

void subtract(const AggregateSpec& spec, std::span<uint64_t> from,
              std::span<const uint64_t> earlier) {
  CLEW_ASSERT(from.size() == earlier.size());
  CLEW_ASSERT(from.size() == cell_words(spec));
  CLEW_ASSERT(subtractable(spec));
  operations_for(spec).subtract(from, earlier);
}

Value finish(const AggregateSpec& spec, std::span<const uint64_t> cell) {
  CLEW_ASSERT(cell.size() == cell_words(spec));
  return operations_for(spec).finish(spec, cell);
}

}  // namespace clew::aggregate
