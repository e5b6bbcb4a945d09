// SPDX-License-Identifier: Apache-2.0
// Fay's third rewrite: cells by key are counted per thread, and the cells of equal keys are merged.
#include "plan/plan.h"

namespace clew::plan {

bool rewrite_group(Plan& plan) {
  return split_first(plan, {.whole = OperatorKind::Group,
                            .partial = OperatorKind::PartialGroup,
                            .rest = OperatorKind::FinalGroup});
}

}  // namespace clew::plan
