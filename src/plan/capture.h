// SPDX-License-Identifier: Apache-2.0
// What an event must carry so that the tracer can do the rest: the largest parts of the expressions
// behind the merge that a probe can store. The expressions are rewritten to refer to them: capture
// k becomes Input k. The time of an event is the time stamp that its record has anyway, so a
// capture that is `e.time` and no more takes no word.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "collect/event_batch.h"
#include "plan/coder.h"
#include "plan/plan.h"

namespace clew::plan {

struct Captured {
  std::vector<query::Expression> captures;  // Over the query's own inputs and lets.
  std::vector<query::Expression> filters;   // Over captures; what stands behind the merge.
  std::vector<query::Expression> values;
  std::vector<query::Expression> arguments;  // Of the aggregates that have one, in order.
};

// InvalidQuery when an expression needs something that neither probe nor tracer has.
Expected<Captured> capture(const Plan& plan);

// How many words of an event hold a capture, and all of them.
collect::EventWords words_in_event(const query::Expression& capture);
collect::EventWords words_of_event(const std::vector<query::Expression>& captures);

// Writes the code that stores them at [r9 + at]; `store` that of one that has no length of its own.
// Behind each that has one r9 moves on: what is given back is where an event of the least size
// ends.
using StoreCapture = std::function<Expected<void>(const query::Expression& capture, int32_t at)>;
Expected<int32_t> store_captures(Coder& coder, const std::vector<query::Expression>& captures,
                                 int32_t at, const StoreCapture& store);

}  // namespace clew::plan
