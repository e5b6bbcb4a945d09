// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_cells.h"

#include <algorithm>
#include <array>

#include "abi/buckets.h"
#include "abi/machine/tables.h"
#include "aggregate/d_value.h"
#include "plan/update.h"

namespace clew::plan {

using abi::AggregateFunction;
using aggregate::AggregateSpec;

namespace {

// More would leave room for a few groups only: they are counted in the tracer.
constexpr uint64_t kCellWordsMax = 0x1000;
static_assert(kCellWordsMax <= abi::kMachineCellWordsMax);

bool is_wide_unsigned(const query::Aggregate& aggregate) {
  if (aggregate.arguments.empty()) return false;
  const query::Type& type = aggregate.arguments[0].type;
  return !(type.kind == query::TypeKind::Integer && (type.is_signed || type.size_bytes < 8));
}

bool is_counted(const query::Aggregate& aggregate, const AggregateSpec& spec) {
  switch (row_of(aggregate.function).counted_values) {
    case abi::ValueKind::None:
    case abi::ValueKind::Any:
    case abi::ValueKind::Number:
      return true;
    case abi::ValueKind::Whole:
      return !spec.is_real;
    case abi::ValueKind::Integer:
      return aggregate.arguments[0].type.kind == query::TypeKind::Integer;
    case abi::ValueKind::SignedInteger:
      return !is_wide_unsigned(aggregate);
  }
  return false;
}

// Of histograms with bounds, as abi::MachineAggregation has them.
std::array<int64_t, 4> parameters_of(const AggregateSpec& spec) {
  if (spec.function == AggregateFunction::Lquantize) return {spec.low, spec.high, spec.step, 0};
  if (spec.function != AggregateFunction::Llquantize) return {};
  return {spec.factor, spec.low, spec.high, spec.steps};
}

// How many cells the D machine has for it, besides its count of updates.
uint64_t words_of(const AggregateSpec& spec) {
  return abi::machine_cell_words(row_of(spec.function).counted, parameters_of(spec).data());
}

}  // namespace

bool has_kernel_cells(const query::Aggregate& aggregate) {
  const AggregateSpec spec = spec_of(aggregate);
  return is_counted(aggregate, spec) && words_of(spec) < kCellWordsMax;
}

bool has_kernel_buckets(const query::Aggregate& aggregate) {
  return row_of(aggregate.function).is_by_bucket;
}

// Quantiles of the same values differ only in what they are read for.
bool have_same_cells(const query::Aggregate& a, const query::Aggregate& b) {
  AggregateSpec of_a = spec_of(a);
  of_a.quantile = spec_of(b).quantile;
  return a.function == b.function && a.arguments == b.arguments && of_a == spec_of(b);
}

abi::MachineAggregation kernel_aggregation(const query::Aggregate& aggregate, uint32_t key_bytes) {
  const AggregateSpec spec = spec_of(aggregate);
  abi::MachineAggregation result{};
  result.function = row_of(aggregate.function).counted;
  result.key_bytes = key_bytes + (has_kernel_buckets(aggregate) ? 8 : 0);
  result.cell_words = static_cast<uint32_t>(1 + words_of(spec));
  const auto parameters = parameters_of(spec);
  std::copy(parameters.begin(), parameters.end(), result.parameters);
  return result;
}

abi::MachineAggregation kernel_count(uint32_t key_bytes) {
  abi::MachineAggregation result{};
  result.function = AggregateFunction::Count;
  result.key_bytes = key_bytes;
  result.cell_words = 2;
  return result;
}

uint64_t kernel_bias(const query::Aggregate& aggregate) {
  const bool orders =
      aggregate.function == AggregateFunction::Min || aggregate.function == AggregateFunction::Max;
  return orders && is_wide_unsigned(aggregate) ? uint64_t{1} << 63 : 0;
}

std::vector<uint64_t> cells_of(const query::Aggregate& aggregate, std::span<const uint64_t> counted,
                               uint64_t bucket) {
  const AggregateSpec spec = spec_of(aggregate);
  std::vector<uint64_t> cells(aggregate::cell_words(spec));
  std::vector<uint64_t> unbiased(counted.begin(), counted.end());
  unbiased[0] ^= kernel_bias(aggregate);
  aggregate::read_cells(spec, cells, unbiased, bucket);
  return cells;
}

}  // namespace clew::plan
