// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_cells.h"

#include <algorithm>

#include "abi/buckets.h"
#include "abi/d_tables.h"
#include "aggregate/function.h"
#include "base/assert.h"
#include "plan/update.h"

namespace clew::plan {

using abi::AggregateFunction;
using aggregate::AggregateSpec;

namespace {

// More would leave room for a few groups only: they are counted in the tracer.
constexpr uint64_t kCellWordsMax = 0x1000;
static_assert(kCellWordsMax <= abi::kDCellWordsMax);

bool is_wide_unsigned(const query::Aggregate& aggregate) {
  if (aggregate.arguments.empty()) return false;
  const query::Type& type = aggregate.arguments[0].type;
  return !(type.kind == query::TypeKind::Integer && (type.is_signed || type.size_bytes < 8));
}

// What the D machine counts for it.
AggregateFunction kernel_form(AggregateFunction function) {
  if (function == AggregateFunction::Distinct) return AggregateFunction::Max;
  if (function == AggregateFunction::Variance) return AggregateFunction::StandardDeviation;
  const bool counts_keys =
      function == AggregateFunction::TopK || function == AggregateFunction::Quantile;
  return counts_keys ? AggregateFunction::Count : function;
}

// Of histograms with bounds, as abi::DAggregation has them.
std::array<int64_t, 4> parameters_of(const AggregateSpec& spec) {
  if (spec.function == AggregateFunction::Lquantize) return {spec.low, spec.high, spec.step, 0};
  if (spec.function != AggregateFunction::Llquantize) return {};
  return {spec.factor, spec.low, spec.high, spec.steps};
}

// How many cells the D machine has for it, besides its count of updates.
uint64_t words_of(const AggregateSpec& spec) {
  return abi::d_cell_words(kernel_form(spec.function), parameters_of(spec).data());
}

}  // namespace

bool has_kernel_cells(const query::Aggregate& aggregate) {
  const AggregateSpec spec = spec_of(aggregate);
  switch (aggregate.kind) {
    case AggregateFunction::Count:
    case AggregateFunction::TopK:
      return true;
    case AggregateFunction::Sum:
    case AggregateFunction::Average:
      return !spec.is_real;
    case AggregateFunction::Min:
    case AggregateFunction::Max:
      return !spec.is_real && aggregate.arguments[0].type.kind == query::TypeKind::Integer;
    case AggregateFunction::StandardDeviation:
    case AggregateFunction::Variance:
      return !spec.is_real && !is_wide_unsigned(aggregate);
    case AggregateFunction::Quantize:
      return !is_wide_unsigned(aggregate);
    case AggregateFunction::Lquantize:
    case AggregateFunction::Llquantize:
      return words_of(spec) < kCellWordsMax;
    case AggregateFunction::Distinct:
      return true;
    case AggregateFunction::Quantile:
      return !spec.is_real;
  }
  return false;
}

bool has_kernel_buckets(const query::Aggregate& aggregate) {
  return aggregate.kind == AggregateFunction::Distinct ||
         aggregate.kind == AggregateFunction::Quantile;
}

// Quantiles of the same values differ only in what they are read for.
bool have_same_cells(const query::Aggregate& a, const query::Aggregate& b) {
  AggregateSpec of_a = spec_of(a);
  of_a.quantile = spec_of(b).quantile;
  return a.kind == b.kind && a.arguments == b.arguments && of_a == spec_of(b);
}

abi::DAggregation kernel_aggregation(const query::Aggregate& aggregate, uint32_t key_bytes) {
  const AggregateSpec spec = spec_of(aggregate);
  abi::DAggregation result{};
  result.function = kernel_form(aggregate.kind);
  result.key_bytes = key_bytes + (has_kernel_buckets(aggregate) ? 8 : 0);
  result.cell_words = static_cast<uint32_t>(1 + words_of(spec));
  const auto parameters = parameters_of(spec);
  std::copy(parameters.begin(), parameters.end(), result.parameters);
  return result;
}

abi::DAggregation kernel_count(uint32_t key_bytes) {
  abi::DAggregation result{};
  result.function = AggregateFunction::Count;
  result.key_bytes = key_bytes;
  result.cell_words = 2;
  return result;
}

uint64_t kernel_bias(const query::Aggregate& aggregate) {
  const bool orders =
      aggregate.kind == AggregateFunction::Min || aggregate.kind == AggregateFunction::Max;
  return orders && is_wide_unsigned(aggregate) ? uint64_t{1} << 63 : 0;
}

std::vector<uint64_t> cells_of(const query::Aggregate& aggregate, std::span<const uint64_t> counted,
                               uint64_t bucket) {
  const AggregateSpec spec = spec_of(aggregate);
  std::vector<uint64_t> cells(aggregate::cell_words(spec));
  switch (aggregate.kind) {
    case AggregateFunction::Min:
    case AggregateFunction::Max:
      cells[0] = counted[0] ^ kernel_bias(aggregate);
      cells[1] = 1;
      return cells;
    case AggregateFunction::Llquantize: {
      // All that is below the lowest magnitude, negative numbers included, is one bucket here.
      const size_t zero = counted.size() - (cells.size() - 1) - 1;
      for (size_t i = 0; i < counted.size(); ++i)
        cells[i <= zero ? 0 : i - zero] += counted[i];
      return cells;
    }
    case AggregateFunction::Quantile:
      CLEW_ASSERT(bucket < cells.size());
      cells[bucket] = counted[0];
      return cells;
    case AggregateFunction::Distinct:
      CLEW_ASSERT(bucket < abi::kDistinctRegisters);
      cells[bucket / 8] = counted[0] << (bucket % 8 * 8);
      return cells;
    case AggregateFunction::Count:
    case AggregateFunction::Sum:
    case AggregateFunction::Average:
    case AggregateFunction::StandardDeviation:
    case AggregateFunction::Variance:
    case AggregateFunction::Quantize:
    case AggregateFunction::Lquantize:
    case AggregateFunction::TopK:
      break;
  }
  CLEW_ASSERT(counted.size() <= cells.size());
  std::copy(counted.begin(), counted.end(), cells.begin());
  return cells;
}

}  // namespace clew::plan
