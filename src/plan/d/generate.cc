// SPDX-License-Identifier: Apache-2.0
#include "plan/d/generate.h"

#include <algorithm>

#include "abi/buckets.h"
#include "base/assert.h"
#include "plan/d/clause_coder.h"
#include "plan/d/key_layout.h"
#include "plan/d/limits.h"
#include "plan/d/storage.h"

namespace clew::plan::d {

using query::d::Compiled;
using query::d::Script;

namespace {

abi::MachineAggregation describe(const query::d::Aggregation& aggregation) {
  abi::MachineAggregation described{};
  described.function = aggregation.function;
  described.cell_words = static_cast<uint32_t>(
      1 + abi::machine_cell_words(aggregation.function, aggregation.parameters.data()));
  for (size_t i = 0; i < aggregation.parameters.size() && i < 4; ++i) {
    described.parameters[i] = aggregation.parameters[i];
  }
  return described;
}

}  // namespace

Compiled<Generated> generate(const Script& script,
                             std::span<const extension::Extension> extensions) {
  Generated generated;
  generated.privates = find_private(script);
  auto storage = StoragePlan::make(script, extensions, generated);
  if (!storage) return tl::unexpected(storage.error());
  for (const query::d::Aggregation& aggregation : script.aggregations) {
    generated.aggregations.push_back(describe(aggregation));
  }
  generated.keys = lay_out_keys(script, storage->string_bytes());
  CLEW_ASSERT(generated.keys.size() == generated.aggregations.size());
  for (size_t i = 0; i < generated.keys.size(); ++i)
    generated.aggregations[i].key_bytes = generated.keys[i].stored_bytes;
  CLEW_TRY(check_limits(script, *storage, generated));
  generated.records.resize(script.clauses.size());
  generated.scratch_begin.resize(script.clauses.size());
  for (uint32_t i = 0; i < script.clauses.size(); ++i) {
    const auto code = [&](ClauseForm form) {
      return ClauseCoder(script, *storage, generated, i, form).code(script.clauses[i]);
    };
    const auto in_window = [&](bool has_privates) -> std::optional<CellClause> {
      CellClause clause;
      auto coded =
          code({.calls = &clause.calls, .updates = &clause.updates, .has_privates = has_privates});
      if (!coded) return std::nullopt;
      clause.program = std::move(*coded);
      return clause;
    };
    auto with_privates = generated.privates.words.empty() ? std::nullopt : in_window(true);
    auto with_cells = in_window(false);
    std::vector<ExtensionCall> calls;
    // The last, since what it says of its window is what all know.
    auto program = code({.calls = &calls});
    if (!program) return tl::unexpected(program.error());
    // Variables are private in all clauses or in none.
    if (!with_privates) generated.privates = {};
    if (with_privates) generated.private_clauses.push_back(std::move(*with_privates));
    generated.cell_clauses.push_back(with_cells ? std::move(*with_cells)
                                                : CellClause{*program, {}, calls});
    generated.clauses.push_back(std::move(*program));
    generated.calls.push_back(std::move(calls));
  }
  CLEW_ASSERT(generated.clauses.size() == script.clauses.size());
  CLEW_ASSERT(generated.calls.size() == script.clauses.size());
  CLEW_ASSERT(generated.cell_clauses.size() == script.clauses.size());
  auto& scratch = generated.scratch_begin;
  if (!scratch.empty())
    std::fill(scratch.begin(), scratch.end(), *std::max_element(scratch.begin(), scratch.end()));
  return generated;
}

}  // namespace clew::plan::d
