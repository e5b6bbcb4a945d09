// SPDX-License-Identifier: Apache-2.0
// Fay's first rewrite: a filter moves in front of the merge, since it looks at one event at a time.
#include "plan/plan.h"

namespace clew::plan {

bool rewrite_filter(Plan& plan) {
  return push_first(plan, OperatorKind::Filter, [&plan](const Operator& op) {
    const query::Expression& condition = plan.query.where[op.index];
    return all_probes_can(plan.query, condition) || is_site_constant(plan.query, condition);
  });
}

}  // namespace clew::plan
