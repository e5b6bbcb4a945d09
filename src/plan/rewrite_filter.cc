// SPDX-License-Identifier: Apache-2.0
// Fay's first rewrite: a filter moves in front of the merge, since it looks at one event at a time.
#include <algorithm>

#include "plan/plan.h"

namespace clew::plan {

bool rewrite_filter(Plan& plan) {
  const size_t merge = plan.merge_position();
  for (size_t i = merge + 1; i < plan.operators.size(); ++i) {
    Operator op = plan.operators[i];
    if (op.kind != OperatorKind::Filter) continue;
    const query::Expression& condition = plan.query.where[op.index];
    if (!all_probes_can(plan.query, condition) && !is_site_constant(plan.query, condition)) {
      continue;
    }
    op.tier = Tier::Probe;
    plan.operators.erase(plan.operators.begin() + static_cast<ptrdiff_t>(i));
    plan.operators.insert(plan.operators.begin() + static_cast<ptrdiff_t>(merge), op);
    return true;
  }
  return false;
}

}  // namespace clew::plan
