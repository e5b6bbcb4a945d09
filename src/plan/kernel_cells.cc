// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_cells.h"

#include <algorithm>

#include "abi/d_buckets.h"
#include "abi/d_tables.h"
#include "aggregate/buckets.h"
#include "aggregate/function.h"
#include "base/assert.h"
#include "plan/update.h"

namespace clew::plan {

using abi::DAggregateFunction;
using aggregate::AggregateSpec;
using query::AggregateKind;

namespace {

// More would leave room for a few groups only: they are counted in the tracer.
constexpr uint64_t kCellWordsMax = 0x1000;
static_assert(kCellWordsMax <= abi::kDCellWordsMax);

bool is_wide_unsigned(const query::Aggregate& aggregate) {
  if (aggregate.arguments.empty()) return false;
  const query::Type& type = aggregate.arguments[0].type;
  return !(type.kind == query::TypeKind::Integer && (type.is_signed || type.size_bytes < 8));
}

abi::DLogLinear log_linear_of(const AggregateSpec& spec) {
  return {.factor = spec.factor,
          .low = static_cast<uint64_t>(spec.low),
          .high = static_cast<uint64_t>(spec.high),
          .steps = spec.steps};
}

DAggregateFunction function_of(AggregateKind kind) {
  switch (kind) {
    case AggregateKind::Sum:
      return DAggregateFunction::Sum;
    case AggregateKind::Min:
      return DAggregateFunction::Min;
    case AggregateKind::Max:
      return DAggregateFunction::Max;
    case AggregateKind::Average:
      return DAggregateFunction::Average;
    case AggregateKind::Deviation:
      return DAggregateFunction::Deviation;
    case AggregateKind::Quantize:
      return DAggregateFunction::Quantize;
    case AggregateKind::LinearQuantize:
      return DAggregateFunction::LinearQuantize;
    case AggregateKind::LogLinearQuantize:
      return DAggregateFunction::LogLinearQuantize;
    case AggregateKind::Distinct:
      return DAggregateFunction::Max;
    case AggregateKind::Count:
    case AggregateKind::TopK:
    case AggregateKind::Quantile:
      break;
  }
  return DAggregateFunction::Count;
}

// How many cells the D machine has for it, besides its count of updates.
uint64_t words_of(DAggregateFunction function, const AggregateSpec& spec) {
  switch (function) {
    case DAggregateFunction::Count:
    case DAggregateFunction::Sum:
    case DAggregateFunction::Min:
    case DAggregateFunction::Max:
      return 1;
    case DAggregateFunction::Average:
      return 2;
    case DAggregateFunction::Deviation:
      return 4;
    case DAggregateFunction::Quantize:
      return abi::kDQuantizeBuckets;
    case DAggregateFunction::LinearQuantize:
      return abi::linear_buckets({.base = spec.low, .limit = spec.high, .step = spec.step});
    case DAggregateFunction::LogLinearQuantize:
      return abi::log_linear_buckets(log_linear_of(spec));
  }
  return 0;
}

// Both sides cut each order of magnitude in the same steps; the D machine has negative ones too.
bool has_same_steps(const AggregateSpec& spec) {
  return abi::log_linear_steps(log_linear_of(spec)) + 2 == aggregate::cell_words(spec);
}

}  // namespace

bool has_kernel_cells(const query::Aggregate& aggregate) {
  const AggregateSpec spec = spec_of(aggregate);
  switch (aggregate.kind) {
    case AggregateKind::Count:
    case AggregateKind::TopK:
      return true;
    case AggregateKind::Sum:
    case AggregateKind::Average:
      return !spec.is_real;
    case AggregateKind::Min:
    case AggregateKind::Max:
      return !spec.is_real && aggregate.arguments[0].type.kind == query::TypeKind::Integer;
    case AggregateKind::Deviation:
      return !spec.is_real && !is_wide_unsigned(aggregate);
    case AggregateKind::Quantize:
      return !is_wide_unsigned(aggregate);
    case AggregateKind::LinearQuantize:
      return words_of(DAggregateFunction::LinearQuantize, spec) < kCellWordsMax;
    case AggregateKind::LogLinearQuantize:
      return has_same_steps(spec) &&
             words_of(DAggregateFunction::LogLinearQuantize, spec) < kCellWordsMax;
    case AggregateKind::Distinct:
      return true;
    case AggregateKind::Quantile:
      return !spec.is_real;
  }
  return false;
}

bool has_kernel_buckets(const query::Aggregate& aggregate) {
  return aggregate.kind == AggregateKind::Distinct || aggregate.kind == AggregateKind::Quantile;
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
  result.function = function_of(aggregate.kind);
  result.key_bytes = key_bytes + (has_kernel_buckets(aggregate) ? 8 : 0);
  result.cell_words = static_cast<uint32_t>(1 + words_of(result.function, spec));
  if (aggregate.kind == AggregateKind::LinearQuantize) {
    result.parameters[0] = spec.low;
    result.parameters[1] = spec.high;
    result.parameters[2] = spec.step;
  }
  if (aggregate.kind == AggregateKind::LogLinearQuantize) {
    result.parameters[0] = spec.factor;
    result.parameters[1] = spec.low;
    result.parameters[2] = spec.high;
    result.parameters[3] = spec.steps;
  }
  return result;
}

abi::DAggregation kernel_count(uint32_t key_bytes) {
  abi::DAggregation result{};
  result.function = DAggregateFunction::Count;
  result.key_bytes = key_bytes;
  result.cell_words = 2;
  return result;
}

uint64_t kernel_bias(const query::Aggregate& aggregate) {
  const bool orders = aggregate.kind == AggregateKind::Min || aggregate.kind == AggregateKind::Max;
  return orders && is_wide_unsigned(aggregate) ? uint64_t{1} << 63 : 0;
}

std::vector<uint64_t> cells_of(const query::Aggregate& aggregate, std::span<const uint64_t> counted,
                               uint64_t bucket) {
  const AggregateSpec spec = spec_of(aggregate);
  std::vector<uint64_t> cells(aggregate::cell_words(spec));
  switch (aggregate.kind) {
    case AggregateKind::Min:
    case AggregateKind::Max:
      cells[0] = counted[0] ^ kernel_bias(aggregate);
      cells[1] = 1;
      return cells;
    case AggregateKind::LogLinearQuantize: {
      // All that is below the lowest magnitude, negative numbers included, is one bucket here.
      const size_t zero = counted.size() - (cells.size() - 1) - 1;
      for (size_t i = 0; i < counted.size(); ++i)
        cells[i <= zero ? 0 : i - zero] += counted[i];
      return cells;
    }
    case AggregateKind::Quantile:
      CLEW_ASSERT(bucket < cells.size());
      cells[bucket] = counted[0];
      return cells;
    case AggregateKind::Distinct:
      CLEW_ASSERT(bucket < aggregate::kDistinctRegisters);
      cells[bucket / 8] = counted[0] << (bucket % 8 * 8);
      return cells;
    case AggregateKind::Count:
    case AggregateKind::Sum:
    case AggregateKind::Average:
    case AggregateKind::Deviation:
    case AggregateKind::Quantize:
    case AggregateKind::LinearQuantize:
    case AggregateKind::TopK:
      break;
  }
  CLEW_ASSERT(counted.size() <= cells.size());
  std::copy(counted.begin(), counted.end(), cells.begin());
  return cells;
}

}  // namespace clew::plan
