// SPDX-License-Identifier: Apache-2.0
// The copies of a module's functions, as bytes for one place near it. A copy is a whole function,
// with its cold parts, in the order of the originals; behind all of them stand the tables of their
// switches.
//
//   original              in the copy
//   jmp, jcc              to the copy of the target, where there is one; rel8 becomes rel32 where
//                         it no longer reaches
//   call f                to the copy of f, where there is one; past a stub, if that is known
//   loop, jrcxz           loop taken ; jmp over ; taken: jmp target ; over:
//   [rip + x]             the same address, by another displacement
//   names of tables       the table's clone
//   runs on into what is  jmp to it
//   no longer behind it
//   what is inserted      where it is wanted (insertions.h)
//   all else              the same bytes
//
// Bytes are copied and fields patched, nothing is encoded anew: what an assembler would choose, and
// what prefixes mean, stays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "copy/facts.h"
#include "copy/insertions.h"
#include "copy/prove.h"

namespace clew::copy {

struct CopiedFunction {
  uint32_t function = 0;  // In Facts::code.functions().
  uint64_t original = 0;  // Its first instruction, and so the next one.
  uint64_t copy = 0;
};

enum class PcKind : uint8_t {
  Instruction,
  Inserted,  // Some that are inserted, in front of it or on a way to it.
  RunsOn,    // A jump there.
};

// An instruction of the copy; its bytes go up to the next one, or to where the code ends.
struct CopiedPc {
  uint32_t offset = 0;    // In bytes.
  uint64_t original = 0;  // A thread that stops at the one is where another would be at this one.
  PcKind kind = PcKind::Instruction;
};

struct ClonedTable {
  uint64_t original = 0;
  uint64_t copy = 0;
  TableKind kind = TableKind::Offsets;
  uint32_t entries = 0;
};

// What must change when the module is elsewhere than at its link-time addresses, or the copy
// elsewhere than it was written for.
enum class FixupKind : uint8_t {
  Outward,     // 4 bytes: a distance from the copy to the module.
  Absolute32,  // 4 bytes: an address in the copy, in programs that are loaded where they were
               // linked.
  Absolute64,  // 8 bytes: an address in the copy or the module.
};

struct Fixup {
  uint32_t offset = 0;
  FixupKind kind = FixupKind::Outward;
  bool is_in_module = false;  // Absolute64: it does not move with the copy.
};

// Addresses are link-time addresses, and `address` is where the first byte is.
struct ModuleCopy {
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
  uint32_t code_size = 0;                 // The tables stand behind it.
  std::vector<CopiedFunction> functions;  // By original.
  std::vector<CopiedPc> pcs;              // By offset.
  std::vector<ClonedTable> tables;        // By copy.
  std::vector<Fixup> fixups;              // By offset.

  [[nodiscard]] uint64_t end() const { return address + bytes.size(); }
  // Where the copy of that instruction is; nothing when it is not copied.
  [[nodiscard]] std::optional<uint64_t> function_copy(uint64_t original) const;
  // The instruction that a byte of the code is a part of. As the others, of the addresses that the
  // copy has now.
  [[nodiscard]] std::optional<uint64_t> original_of(uint64_t address) const;
};

// Where the copy of each instruction is. Borrows nothing.
class CopyMap {
 public:
  explicit CopyMap(const ModuleCopy& copy);
  // Of an instruction of the file, behind what is inserted in front of it; nothing when it is not
  // copied.
  [[nodiscard]] std::optional<uint64_t> copy_of(uint64_t original) const;

 private:
  std::vector<CopiedPc> by_original_;
  uint64_t address_;
};

// Of all that was proved, in any order. Errors: Limit when something would be out of reach of a
// displacement of 32 bits.
Expected<ModuleCopy> write_copy(const Facts& facts, std::span<const Proved> proved,
                                const Insertions& insertions, uint64_t address);

}  // namespace clew::copy
