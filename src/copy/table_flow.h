// SPDX-License-Identifier: Apache-2.0
// Where the addresses of tables get to in a function: through registers, along the edges of its
// blocks. What is put in memory is lost, and so is what memory gives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "code/blocks.h"
#include "copy/facts.h"
#include "copy/table_extents.h"

namespace clew::copy {

// The four bytes of an instruction that say where a table is.
struct NamingField {
  uint64_t instruction = 0;
  uint8_t offset = 0;
};

// What may name a table: one lea r64, [rip + x], which is the table's or that of something in front
// of which it lies; or all accesses to [x + r64 * 8].
struct Candidate {
  uint64_t table = 0;
  bool is_absolute = false;
  std::vector<NamingField> fields;
};
inline constexpr size_t kCandidatesMax = 64;
using CandidateSet = uint64_t;  // A bit for each, in the order of the vector.

enum class Holds : uint8_t {
  Other,   // Nothing that comes from a table.
  Table,   // Its address.
  Entry,   // One of its entries, of 4 bytes.
  Target,  // Where it leads.
  Mixed,   // One of these, or something else.
};

// Of a register. All candidates of a value name one table, unless it is Mixed.
struct Value {
  Holds holds = Holds::Other;
  CandidateSet from = 0;

  bool operator==(const Value&) const = default;
};

struct FlowResult {
  // An indirect jump that leads where a table says, and the names that its value came from.
  struct Jump {
    uint64_t address = 0;
    CandidateSet from = 0;
  };
  std::vector<Jump> jumps;
  CandidateSet escaped = 0;  // Some instruction reads what they give, and is no part of a switch;
  uint64_t escaped_at = 0;   // the first one that does.
};

// Nothing when there are too many.
std::optional<std::vector<Candidate>> find_candidates(const Facts& facts,
                                                      const code::Blocks& blocks,
                                                      const TableReader& reader);

// Fills `extents` with the tables that are read.
FlowResult follow_tables(const Facts& facts, uint32_t function, const code::Blocks& blocks,
                         const std::vector<Candidate>& candidates, TableExtents& extents);

}  // namespace clew::copy
