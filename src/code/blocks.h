// SPDX-License-Identifier: Apache-2.0
// Basic blocks of a function, and how control gets from one to the others: straight on, by jumps,
// through switch tables, behind calls, and out of the function.
//
// A block is a run of instructions that is entered at its first one only, and left behind its last
// one only, but for traps and signals. It ends
//   - behind an instruction that sends control elsewhere, or may: a jump, a return, a call, a trap,
//     an int3, a far branch;
//   - in front of an instruction at which another block begins, and where a part of the function
//     ends.
// A block begins at the function's first instruction, where an edge of the function leads, and
// where something else may lead: landing pads, labels whose address is taken, entries from outside.
//
// Guarantees, also for hostile bytes:
//   - Blocks are those of code that can be reached from there, so what stands behind a call that
//     does not come back (noreturn.h) is in none, unless something else leads there.
//   - A block is one piece of whole instructions, as the sweep decoded them; no two share a byte.
//   - An edge leads to the first byte of a block of the same function, or out of the function.
//   - Targets are an upper bound, as in jump_tables.h. Only an Unknown edge may lead where no edge
//     says; whoever must know all ways refuses a function that has one (`is_whole`).
// Edges to landing pads are none: an unwinder may go from every call to those of its function.
//
// Cost: a walk over the function, twice; and the depth of the stack when an indirect jump has no
// table. Memory is one byte for each byte of the function while it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "code/module_code.h"
#include "code/noreturn.h"

namespace clew::code {

inline constexpr uint32_t kNoBlock = UINT32_MAX;  // Outside of the function.

enum class EdgeKind : uint8_t {
  Next,         // Straight on, also over padding between parts: a jump that is not taken, an int3.
  Taken,        // A direct jump.
  Case,         // An entry of a switch table. It may also lead to another range's start (a part).
  CallReturn,   // From a call to the instruction behind it.
  TailCall,     // To the start of another range, or to code in none (the PLT); also without a jump.
  Elsewhere,    // Into the middle of another function.
  Return,       // To whoever called.
  StackSwitch,  // To another frame further out: what exits.h calls one. Nobody returns.
  Label,        // To any `foreign` block: an indirect jump through labels that are stored in data.
  Unknown,      // An indirect jump that nothing explains, bytes that are no instruction.
};

struct Edge {
  EdgeKind kind = EdgeKind::Next;
  uint64_t target = 0;        // 0 when it is not known: Return, Label, an indirect TailCall, ….
  uint32_t block = kNoBlock;  // Where that block is in blocks().
};

struct Block {
  uint64_t begin = 0;
  uint64_t end = 0;      // Behind its last byte.
  uint64_t last = 0;     // Its last instruction.
  bool foreign = false;  // Something that is no edge of this function may lead here.
  size_t first_edge = 0;
  size_t edges_count = 0;  // 0 behind a trap or a call that does not come back.
};

// A value of its own: it borrows nothing.
class Blocks {
 public:
  // By address.
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  // Several jumps through one table share their edges.
  [[nodiscard]] std::span<const Edge> edges_of(const Block& block) const;
  // The block with that byte, which may be in the middle of it.
  [[nodiscard]] std::optional<uint32_t> block_at(uint64_t address) const;
  // Every way that control can take is an edge, or begins at a `foreign` block: none is Unknown.
  [[nodiscard]] bool is_whole() const;

 private:
  friend class BlockFinder;

  std::vector<Block> blocks_;
  std::vector<Edge> edges_;
};

// Of functions()[function] and its cold parts. Without blocks when its first byte is no
// instruction. Where ranges are nested, the inner one's code is also the outer one's.
Blocks find_blocks(const ModuleCode& code, uint32_t function, const NoReturn& noreturn);

}  // namespace clew::code
