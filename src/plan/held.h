// SPDX-License-Identifier: Apache-2.0
// Queries over events that were recorded by another query: what they may use is what the events
// hold. Expressions are the same when they read the same in the normal form (query/print.h), lets
// written out.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/capture.h"
#include "plan/plan.h"
#include "query/diagnostic.h"

namespace clew::plan {

// One capture of recorded events, as the file names it.
struct HeldCapture {
  std::string text;           // Its normal form.
  query::Expression meaning;  // How its words are decoded: kind, field, type.
};

// What a plan's events hold, in the order of their words.
Expected<std::vector<HeldCapture>> held_by(const Plan& plan);

// The expressions of a plan without rewrites (plan::plain), over what is held. Captures are those
// of `held`, and after them the time, which every event has. Errors: InvalidQuery with the place of
// what is not held, what is, and the nearest of it.
Expected<Captured> capture_held(const Plan& plan, const std::vector<HeldCapture>& held,
                                const query::Reporter& report);

}  // namespace clew::plan
