// SPDX-License-Identifier: Apache-2.0
// How many entries of a table a read can reach, by what the code in front of it checks:
//
//     cmp eax, 25 ; ja default ; … ; movsxd rdx, [rcx + rax * 4]       26 entries
//     movzx eax, byte [rsi] ; jmp [rax * 8 + table]                    256 at most
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "code/blocks.h"
#include "code/module_code.h"
#include "copy/facts.h"

namespace clew::copy {

// How a table is read: by which instruction, and with which register as the index.
struct TableRead {
  uint64_t instruction = 0;
  uint8_t index = 0;  // abi::Register
  bool of_words = false;
};

struct TableBound {
  uint64_t entries = 0;
  // By a comparison: the table has as many. Else it may have fewer, and the program knows why.
  bool is_checked = false;

  bool operator==(const TableBound&) const = default;
};

// Looks along all ways that lead to the read; each must have a bound, and the largest counts. Ways
// by a switch are left out at first, as too many are known: of the blocks on a way that such a one
// may lead to the answer holds only if none does.
struct FoundBound {
  std::optional<TableBound> bound;
  std::vector<uint64_t> assumed;  // Where the blocks begin that no switch must lead to.
};

// Borrows all.
class BoundFinder {
 public:
  BoundFinder(const Facts& facts, uint32_t function, const code::Blocks& blocks);

  [[nodiscard]] FoundBound find(const TableRead& read) const;

 private:
  struct Way {
    uint32_t from = 0;  // A block.
    bool taken = false;
  };

  const code::ModuleCode& code_;
  const code::Blocks& blocks_;
  std::vector<std::vector<Way>> ways_;  // To each block, but by switches.
  std::vector<bool> by_switch_;         // A switch may lead to the block.
  std::vector<bool> is_start_;          // Control comes there from outside.
};

}  // namespace clew::copy
