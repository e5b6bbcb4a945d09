// SPDX-License-Identifier: Apache-2.0
// Aggregate updates as probe ISA: what aggregate::add means, instruction by instruction.
#pragma once

#include "aggregate/function.h"
#include "base/error.h"
#include "plan/coder.h"
#include "query/query.h"

namespace clew::plan {

// How the aggregating stage counts what the query asks for.
aggregate::AggregateSpec spec_of(const query::Aggregate& aggregate);

// Adds the aggregate's argument to the cell at [r9 + offset_bytes].
Expected<void> update(Coder& coder, const query::Aggregate& aggregate, uint32_t offset_bytes);

}  // namespace clew::plan
