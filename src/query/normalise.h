// SPDX-License-Identifier: Apache-2.0
// Build -> Query: takes what was analysed apart into what runs at the event (lets, where, values,
// aggregates) and what runs in the tracer (columns, having, order).
#pragma once

#include <span>

#include "base/error.h"
#include "query/analyse.h"
#include "query/build.h"

namespace clew::query {

inline bool is_leaf(const Expression& expression) {
  return expression.operands.empty() && expression.kind != ExpressionKind::Call;
}

Expected<Query> normalise(Build& build, Analysed analysed);

// Analyses and normalises one query; the `visible` definitions can be named in it.
Expected<Query> analyse_query(const SyntaxQuery& syntax, std::span<const SyntaxDefinition> visible,
                              const Reporter& report, const Environment& environment,
                              Limits& limits);

}  // namespace clew::query
