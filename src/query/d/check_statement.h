// SPDX-License-Identifier: Apache-2.0
// The parts of the checker that deal with statements; each is a file of that name.
#pragma once

#include "query/d/check_context.h"

namespace clew::query::d::checking {

// check_actions.cc: statement.expression is a Call to `action`.
Compiled<void> check_action(Context& context, Statement& statement, Action action);
[[nodiscard]] bool is_data_recording(Action action);
[[nodiscard]] bool is_destructive(Action action);
// stack(), ustack(), sym(), … give values of dynamic type. Typed as Calls; for stacks the number of
// frames becomes operands[0] always.
[[nodiscard]] bool is_dynamic_function(Action action);
Compiled<void> check_dynamic_function(Context& context, Node& node, Action action);

// check_aggregations.cc: statement.expression is an Assign to an Aggregation.
Compiled<void> check_aggregate(Context& context, Statement& statement);
Compiled<void> check_aggregation_action(Context& context, Statement& statement);
// The aggregation that argument `number` (from 0) of a call names; `tag` is as "D_PRINTA_".
Compiled<uint32_t> named_aggregation(Context& context, const Node& call, size_t number,
                                     std::string_view tag);

// check_formats.cc: printf, printa, system, freopen.
Compiled<void> check_printf(Context& context, Statement& statement);
Compiled<void> check_printa(Context& context, Statement& statement);

// check_speculation.cc: what may follow what.
Compiled<void> note_action(Context& context, const Statement& statement);
Compiled<void> note_aggregate(Context& context, const Statement& statement);

// check_options.cc
Compiled<void> apply_option(Context& context, const PragmaOption& option);

}  // namespace clew::query::d::checking
