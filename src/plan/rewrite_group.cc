// SPDX-License-Identifier: Apache-2.0
// Fay's third rewrite: cells by key are counted per thread, and the cells of equal keys are merged.
// The threads of a process meet on the process tier, processes at the node.
#include "plan/plan.h"

namespace clew::plan {

bool rewrite_group(Plan& plan) {
  const size_t merge = plan.merge_position();
  for (size_t i = merge + 1; i < plan.operators.size(); ++i) {
    if (plan.operators[i].kind != OperatorKind::Group) continue;
    if (!can_group_in_probes(plan)) return false;
    plan.operators[i].kind = OperatorKind::FinalGroup;
    plan.operators[merge].tier = Tier::Process;
    const Operator partial{.kind = OperatorKind::PartialGroup, .tier = Tier::Probe, .index = 0};
    plan.operators.insert(plan.operators.begin() + static_cast<ptrdiff_t>(merge), partial);
    return true;
  }
  return false;
}

}  // namespace clew::plan
