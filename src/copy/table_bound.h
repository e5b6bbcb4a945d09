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
};

// Looks along the only way that leads to the read. Borrows both.
class BoundFinder {
 public:
  BoundFinder(const code::ModuleCode& code, const code::Blocks& blocks);

  [[nodiscard]] std::optional<TableBound> find(const TableRead& read) const;

 private:
  // The only block that leads to `block`; nothing when there are several, or others may.
  [[nodiscard]] std::optional<uint32_t> only_before(uint32_t block) const;

  const code::ModuleCode& code_;
  const code::Blocks& blocks_;
  std::vector<uint32_t> before_;  // By block; kNone or kSeveral where there is not one.
};

}  // namespace clew::copy
