// SPDX-License-Identifier: Apache-2.0
// Fay's fourth rewrite: an aggregate of everything is one of each thread's stream, merged; a count
// becomes a sum of counts.
// The threads of a process meet on the process tier, processes at the node.
#include "plan/plan.h"

namespace clew::plan {

bool rewrite_aggregate(Plan& plan) {
  const size_t merge = plan.merge_position();
  for (size_t i = merge + 1; i < plan.operators.size(); ++i) {
    if (plan.operators[i].kind != OperatorKind::Aggregate) continue;
    if (!can_group_in_probes(plan)) return false;
    plan.operators[i].kind = OperatorKind::FinalAggregate;
    plan.operators[merge].tier = Tier::Process;
    const Operator partial{.kind = OperatorKind::PartialAggregate, .tier = Tier::Probe, .index = 0};
    plan.operators.insert(plan.operators.begin() + static_cast<ptrdiff_t>(merge), partial);
    return true;
  }
  return false;
}

}  // namespace clew::plan
