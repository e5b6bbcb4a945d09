// SPDX-License-Identifier: Apache-2.0
// Fay's second rewrite: what is selected of an event is computed in front of the merge, so that
// only results travel.
#include "plan/plan.h"

namespace clew::plan {

bool rewrite_select(Plan& plan) {
  const size_t merge = plan.merge_position();
  for (size_t i = merge + 1; i < plan.operators.size(); ++i) {
    Operator op = plan.operators[i];
    if (op.kind != OperatorKind::Select) continue;
    const bool can = keys_known_before(plan.query) ||
                     all_probes_can_store(plan.query, plan.query.values[op.index].expression);
    if (!can) continue;
    op.tier = Tier::Probe;
    plan.operators.erase(plan.operators.begin() + static_cast<ptrdiff_t>(i));
    plan.operators.insert(plan.operators.begin() + static_cast<ptrdiff_t>(merge), op);
    return true;
  }
  return false;
}

}  // namespace clew::plan
