// SPDX-License-Identifier: Apache-2.0
// Fay's fourth rewrite: an aggregate of everything is one of each thread's stream, merged; a count
// becomes a sum of counts.
#include "plan/plan.h"

namespace clew::plan {

bool rewrite_aggregate(Plan& plan) {
  return split_first(plan, {.whole = OperatorKind::Aggregate,
                            .partial = OperatorKind::PartialAggregate,
                            .rest = OperatorKind::FinalAggregate});
}

}  // namespace clew::plan
