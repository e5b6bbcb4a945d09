// SPDX-License-Identifier: Apache-2.0
// A query as its sources in the kernel see it. What a program in the kernel knows itself, and a
// probe in a process does not (the pid, names of thread and process), and what it keeps in another
// way (the entry of a call), becomes arguments of the event: abi::QueryWord. All else of a plan
// then means the same as in a process.
#pragma once

#include <set>

#include "abi/query_window.h"
#include "plan/plan.h"
#include "query/query.h"

namespace clew::plan {

// What programs note of a field of owners (query::is_of_owner), which the tracer looks up.
abi::QueryWord word_of_owner(query::Field field);

// Only its kernel sources can be lowered (kernel_lower.h).
query::Query kernel_form(query::Query query);

// The plan of a query in that form: what programs in the kernel can do stands before the merge.
// Counting is left to the tracer where the kernel's tables have no such cells (some unsigned
// numbers of 8 bytes), where a key is made of a name by computing, and where events are counted
// down (`for N events`).
Plan make_kernel_plan(query::Query query);

// What an expression in that form needs besides arg0 to arg5 and the time.
struct KernelUse {
  std::set<abi::QueryWord> words;
  bool tid = false;
  bool caller = false;

  [[nodiscard]] bool entry() const;  // The entry of the same call.
};
void find_kernel_use(const query::Query& query, const query::Source& source,
                     const query::Expression& expression, KernelUse& use);

// Whether `pid` is one of these, or is not `except`, in that form; a constant when there is nothing
// to ask.
query::Expression pid_condition(const std::vector<int64_t>& pids, int64_t except);

}  // namespace clew::plan
