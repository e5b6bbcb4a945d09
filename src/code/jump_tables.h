// SPDX-License-Identifier: Apache-2.0
// Switch tables: where an indirect jump inside a function can go. Recognises the tables that gcc,
// clang and hand-written assembly use: 4-byte offsets from the table's start (position-independent
// code) and 8-byte addresses.
//
// The answer is an upper bound: the targets of every table that the function names and that leads
// into it, each read until the first entry that cannot be one, whatever bound the code checks. A
// target too many can only cost a window, a target too few could cost the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "code/module_code.h"

namespace clew::code {

inline constexpr unsigned kTableEntriesMax = 4096;

// Remembers the last function's tables: ask in the order of addresses.
class JumpTables {
 public:
  // Needs the finished sweep of `code`, which must outlive this.
  explicit JumpTables(const ModuleCode& code) : code_(code) {}

  // The targets of the indirect jump at `jump`; empty when it is not understood.
  const std::vector<uint64_t>& targets_of(uint64_t jump);

 private:
  [[nodiscard]] bool reads_offset_table(uint64_t jump) const;
  [[nodiscard]] bool is_own_instruction(uint64_t address) const;
  void collect_named_tables();
  bool add_offset_table(uint64_t table, uint64_t base, size_t entries_min);
  void add_address_table(uint64_t table);

  const ModuleCode& code_;
  uint32_t function_ = kNoOwner;  // Whose tables are in the vectors below.
  std::vector<AddressRange> parts_;
  std::vector<uint64_t> offset_targets_;   // Of tables of 4-byte offsets.
  std::vector<uint64_t> address_targets_;  // Of tables of 8-byte addresses.
  std::vector<uint64_t> none_;
};

}  // namespace clew::code
