// SPDX-License-Identifier: Apache-2.0
// Which sources of processes a program of the kernel can serve, which runs at a uprobe in place of
// one in the process (kernel_lower.h, KernelLowerInput::process_sources): those about whose events
// it can know all that the query asks for.
#pragma once

#include "query/query.h"

namespace clew::plan {

// Not: arguments beyond the six in registers, floating-point values, functions of extensions (a
// thread's state is kept in its process), calls that are open at the end, and calls that are left
// by exceptions.
bool can_be_uprobe(const query::Query& query, const query::Source& source);

// Whether the query asks for the source's result.
bool reads_result(const query::Query& query, const query::Source& source);
bool reads_elapsed(const query::Query& query, const query::Source& source);

// How many of its arguments the query reads, the last one included: 0 = none.
unsigned arguments_asked(const query::Query& query, const query::Source& source);

// Whether the query asks for a stack: the kernel walks those of processes, too.
bool reads_stack(const query::Query& query);

// Whether probes in processes can walk all that it asks for. Not: beside sources of the kernel, and
// calls that are open at the end.
bool can_walk_in_processes(const query::Query& query);

// Whether an answer names code by its address. What a program of the kernel says of an address is
// not of which process it is.
bool names_code(const query::Query& query);

}  // namespace clew::plan
