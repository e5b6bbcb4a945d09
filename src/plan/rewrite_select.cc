// SPDX-License-Identifier: Apache-2.0
// Fay's second rewrite: what is selected of an event is computed in front of the merge, so that
// only results travel.
#include "plan/plan.h"

namespace clew::plan {

bool rewrite_select(Plan& plan) {
  return push_first(plan, OperatorKind::Select, [&plan](const Operator& op) {
    return keys_known_before(plan.query) ||
           all_probes_can_store(plan.query, plan.query.values[op.index].expression);
  });
}

}  // namespace clew::plan
