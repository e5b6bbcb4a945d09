// SPDX-License-Identifier: Apache-2.0
// Aggregate updates as probe ISA: what aggregate::add means, instruction by instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "aggregate/accumulator.h"
#include "aggregate/function.h"
#include "base/error.h"
#include "plan/coder.h"
#include "query/query.h"

namespace clew::plan {

// How the aggregating stage counts what the query asks for.
aggregate::AggregateSpec spec_of(const query::Aggregate& aggregate);

// Whether its update looks at a value. TopK counts, and its value is part of the key.
bool needs_value(const query::Aggregate& aggregate);

// What makes the key of a group, in order; the words of it, and the cells of its table.
std::vector<const query::Expression*> key_parts(const query::Query& query);
aggregate::TableShape table_shape(const query::Query& query);

// r0 = what is added: the value, or the hash of what is distinct.
Expected<void> compute(Coder& coder, const query::Aggregate& aggregate);

// r0 = a value: r0 = its bucket of quantile().
Expected<void> find_quantile_bucket(Coder& coder, bool is_signed);
// r0 = a hash: r2 = its register of distinct(), r3 = its rank there.
Expected<void> find_distinct_register(Coder& coder);

// Computes what `update` adds into the frame, and gives its offset from r10.
Expected<int32_t> prepare(Coder& coder, const query::Aggregate& aggregate);

// Adds the aggregate's argument, `prepared` or computed now, to the cell at [r9 + offset_bytes].
Expected<void> update(Coder& coder, const query::Aggregate& aggregate, uint32_t offset_bytes,
                      std::optional<int32_t> prepared = std::nullopt);

}  // namespace clew::plan
