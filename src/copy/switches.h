// SPDX-License-Identifier: Apache-2.0
// The switches of a function, so exactly that a copy of it can have tables of its own: which table
// each indirect jump reads, how many entries it has, and every field of an instruction that names
// it.
//
// A data flow over the function's blocks follows the addresses of tables through registers:
//
//     lea rdx, [rip + table]          a table
//     movsxd rax, [rdx + rax * 4]     an entry of it
//     add rax, rdx                    where it leads
//     jmp rax                         a switch
//
// and the same with words of 8 bytes (computed gotos, programs at a fixed address). A name is the
// table's own when nothing else is done with what it gives: no other instruction reads it, on no
// way. A name with other uses may be that of an array that a compiler addresses from in front of
// its first element; it makes the function refused, as a copy of it could not be told apart.
//
// What JumpTables (code/jump_tables.h) finds is an upper bound for the function as a whole; this is
// exact for each jump, or nothing.
#pragma once

#include <cstdint>
#include <vector>

#include <tl/expected.hpp>

#include "code/blocks.h"
#include "copy/facts.h"
#include "copy/reason.h"
#include "copy/table_entries.h"

namespace clew::copy {

struct SwitchTable {
  uint64_t address = 0;
  TableKind kind = TableKind::Offsets;
  std::vector<uint64_t> targets;  // By entry. Blocks of the function, or starts of other ranges.
};

// Four bytes of an instruction that say where a table is.
struct TableName {
  uint64_t instruction = 0;
  uint8_t field_offset = 0;
  bool is_absolute = false;  // Else relative to the instruction's end.
  uint32_t table = 0;        // In Switches::tables.
};

struct TableJump {
  uint64_t jump = 0;
  uint32_t table = 0;
};

struct Switches {
  std::vector<SwitchTable> tables;  // By address.
  std::vector<TableName> names;     // By address, and so are the jumps.
  std::vector<TableJump> jumps;
};

// `blocks` are those of functions()[function]. Refused, with the instruction: an indirect jump that
// is no tail call, no switch of stacks and no switch over a table (UnresolvedJump); a name with
// other uses (TableEscapes); a table whose end is not known (UnboundedTable); a direct jump to what
// is no instruction (Undecodable).
tl::expected<Switches, Refusal> find_switches(const Facts& facts, uint32_t function,
                                              const code::Blocks& blocks);

}  // namespace clew::copy
