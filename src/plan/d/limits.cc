// SPDX-License-Identifier: Apache-2.0
#include "plan/d/limits.h"

#include <algorithm>

#include <fmt/format.h>

#include "abi/machine/tables.h"
#include "base/assert.h"

namespace clew::plan::d {

using query::d::Aggregation;
using query::d::Compiled;
using query::d::CompileError;
using query::d::Script;
using query::d::Variable;
using query::d::VariableScope;

namespace {

// What the kernel's verifier lets an accessor copy from an element of any size class.
constexpr uint32_t kElementBytesMax = 1024;
constexpr uint32_t kVariablesMax = abi::kMachineVariablesMax - 1;

Compiled<void> check_counts(const Script& script, const Generated& generated) {
  if (generated.variables.size() > kVariablesMax) {
    return too_large(
        fmt::format("more than {} thread-local and associative variables", kVariablesMax));
  }
  if (script.aggregations.size() > abi::kMachineAggregationsMax) {
    return too_large(fmt::format("more than {} aggregations", abi::kMachineAggregationsMax));
  }
  return {};
}

Compiled<void> check_variable(const Script& script, const Variable& variable,
                              const abi::MachineVariable& made) {
  if (made.key_bytes > abi::kMachineKeyBytesMax) {
    return too_large(fmt::format("keys of '{}' have {} bytes; {} is the most", variable.name,
                                 made.key_bytes, abi::kMachineKeyBytesMax));
  }
  const bool is_text = class_of(script.types, variable.type) == ValueClass::String;
  if (!is_text && made.value_bytes > kElementBytesMax) {
    return too_large(fmt::format("elements of '{}' have {} bytes; {} is the most", variable.name,
                                 made.value_bytes, kElementBytesMax));
  }
  return {};
}

Compiled<void> check_aggregation(const Aggregation& aggregation,
                                 const abi::MachineAggregation& made) {
  if (made.key_bytes > abi::kMachineKeyBytesMax) {
    return too_large(fmt::format("keys of '@{}' have {} bytes; {} is the most", aggregation.name,
                                 made.key_bytes, abi::kMachineKeyBytesMax));
  }
  if (made.cell_words > abi::kMachineCellWordsMax) {
    return too_large(fmt::format("'@{}' has {} buckets; {} is the most", aggregation.name,
                                 made.cell_words - 1, abi::kMachineCellWordsMax - 1));
  }
  return {};
}

}  // namespace

tl::unexpected<CompileError> too_large(std::string message) {
  return tl::unexpected(CompileError{"D_NOMEM", std::move(message), 0, {}, {}});
}

uint32_t string_bytes_of(const Script& script) {
  return std::min(script.string_size_bytes + 1, abi::kMachineStringBytesMax);
}

Compiled<void> check_limits(const Script& script, const StoragePlan& storage,
                            const Generated& generated) {
  CLEW_TRY(check_counts(script, generated));
  for (size_t i = 0; i < script.variables.size(); ++i) {
    const VariableHome& home = storage.home(static_cast<uint32_t>(i));
    if (home.place != VariableHome::Place::Dynamic) continue;
    CLEW_ASSERT(home.number < generated.variables.size());
    CLEW_TRY(check_variable(script, script.variables[i], generated.variables[home.number]));
  }
  for (size_t i = 0; i < script.aggregations.size(); ++i)
    CLEW_TRY(check_aggregation(script.aggregations[i], generated.aggregations[i]));
  return {};
}

}  // namespace clew::plan::d
