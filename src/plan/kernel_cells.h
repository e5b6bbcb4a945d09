// SPDX-License-Identifier: Apache-2.0
// The aggregates of a query in the tables that the D machine keeps in the kernel
// (abi/machine/tables.h): which of them it has, how they are described to it, and what its cells
// are as cells of aggregate/function.h.
//
// The D machine's values are signed. Unsigned numbers of 8 bytes keep their order when their top
// bit is turned round: so does kernel_bias say for min and max.
//
// quantile() and distinct() have cells of kilobytes, of which a key uses few words: in the kernel
// each of them that is used is an entry by itself, whose key ends with the bucket or register. A
// bucket is a count, a register a max.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/machine/window.h"
#include "query/query.h"

namespace clew::plan {

bool has_kernel_cells(const query::Aggregate& aggregate);

// Whether its keys end with a word for the bucket.
bool has_kernel_buckets(const query::Aggregate& aggregate);

// `key_bytes`: of the query's keys, without a bucket. The aggregate has_kernel_cells.
abi::MachineAggregation kernel_aggregation(const query::Aggregate& aggregate, uint32_t key_bytes);
// Whether one table does for both.
bool have_same_cells(const query::Aggregate& a, const query::Aggregate& b);
// A count of hits, for queries that have keys and no aggregates.
abi::MachineAggregation kernel_count(uint32_t key_bytes);

// What the program turns round in a value before it adds it; 0 = nothing.
uint64_t kernel_bias(const query::Aggregate& aggregate);

// `counted`: the D machine's cells without its count of updates, of a key that has been counted.
// `bucket`: the last word of the key, where it has one.
std::vector<uint64_t> cells_of(const query::Aggregate& aggregate, std::span<const uint64_t> counted,
                               uint64_t bucket = 0);

}  // namespace clew::plan
