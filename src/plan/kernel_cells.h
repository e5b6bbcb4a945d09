// SPDX-License-Identifier: Apache-2.0
// The aggregates of a query in the tables that the D machine keeps in the kernel (abi/d_tables.h):
// which of them it has, how they are described to it, and what its cells are as cells of
// aggregate/function.h.
//
// The D machine's values are signed. Unsigned numbers of 8 bytes keep their order when their top
// bit is turned round: so does kernel_bias say for min and max.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/d_window.h"
#include "query/query.h"

namespace clew::plan {

bool has_kernel_cells(const query::Aggregate& aggregate);

// `key_bytes`: of the keys of all aggregates of the query. The aggregate has_kernel_cells.
abi::DAggregation kernel_aggregation(const query::Aggregate& aggregate, uint32_t key_bytes);
// A count of hits, for queries that have keys and no aggregates.
abi::DAggregation kernel_count(uint32_t key_bytes);

// What the program turns round in a value before it adds it; 0 = nothing.
uint64_t kernel_bias(const query::Aggregate& aggregate);

// `counted`: the D machine's cells without its count of updates, of a key that has been counted.
std::vector<uint64_t> cells_of(const query::Aggregate& aggregate,
                               std::span<const uint64_t> counted);

}  // namespace clew::plan
