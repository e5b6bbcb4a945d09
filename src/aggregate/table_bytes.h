// SPDX-License-Identifier: Apache-2.0
// A partial Table as bytes, for whoever merges it elsewhere or later, and back. The bytes of one
// table are always the same. What is read may be anybody's: it is an error or a table that can be
// merged, finished and printed, takes memory in proportion to the bytes, and writes back as it was.
//
//     u32 magic "CLWT"    u32 version    u64 size_bytes, of all    u64 interval
//     keys:        u32 count; of each  name, type, unit, approximate, role, adds_up,
//                                  of_kernel
//     aggregates:  u32 count; of each  name and the members of AggregateSpec
//     losses:      the members of collect::Losses
//     rows:        u64 count, in ascending order of key; of each  its values, its cells as words
//
// Little endian, without padding. An enumerator is its number, a bool one byte, a text or a list
// its u32 count and what it holds, a value of a key u8 alternative (null, i64, u64, double, text,
// stack) and what that holds. Whatever changes in a member changes the version: only the same
// version is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregate/table.h"
#include "base/error.h"

namespace clew::aggregate {

inline constexpr uint32_t kTableVersion = 5;

// Of keys or of aggregates; far more than a query has.
inline constexpr uint32_t kTableColumnsMax = 4096;

[[nodiscard]] std::vector<std::byte> to_bytes(const Table& table);

// Refused: another version. InvalidQuery: aggregates that make no sense. Io: whatever else is
// wrong.
[[nodiscard]] Expected<Table> table_of(std::span<const std::byte> bytes);

}  // namespace clew::aggregate
