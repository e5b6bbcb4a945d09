// SPDX-License-Identifier: Apache-2.0
// The tables of abi/machine/unwind.h of one session, in maps for programs of the kernel, or in
// memory that processes may read: rows of files are put in once, the segments of processes as they
// change. Nothing is ever taken from the rows: when they are full, later files have none, and their
// frames are found by frame pointers. Internal to user_stacks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "abi/machine/unwind.h"
#include "base/error.h"
#include "kernel/link.h"
#include "kernel/maps.h"
#include "target/address_space.h"
#include "target/unwind_rows.h"

namespace clew::kernel {

class UnwindTables {
 public:
  // Where a file's rows are. An address of the file minus `base` is one of the rows'.
  struct Place {
    uint64_t base = 0;
    uint32_t first = 0;
    uint32_t count = 0;
  };

  static Expected<UnwindTables> make(size_t rows_max);
  // In zeroed memory of size_bytes(rows_max), laid out as a file of them is. Borrowed.
  static UnwindTables make(size_t rows_max, std::span<uint8_t> memory);
  static constexpr size_t size_bytes(size_t rows_max) {
    return abi::kUnwindRowsOffset + rows_max * sizeof(abi::MachineUnwindRow);
  }
  // Of those in maps.
  void add_symbols(Symbols& symbols) const;

  // Without rows when there is no room, or when they do not fit a table.
  Place add(const target::UnwindRows& rows);
  // For mappings of the file that are not in a process's segments yet.
  void add(const abi::MachineUnwindFile& file);
  // Whether the process's segments are others than before. `program`: the inode that it runs.
  bool put(uint64_t pid, uint64_t program, const std::vector<abi::MachineUnwindSegment>& segments);
  void remove(uint64_t pid);
  // The process may ask for another look.
  void allow_questions(uint64_t pid);

 private:
  static constexpr size_t kClasses = 16;  // Of sizes: 1 << class segments.

  struct Room {
    uint32_t first = 0;
    uint32_t size_class = 0;
  };

  abi::MachineUnwindProcess* find(uint64_t pid) const;
  abi::MachineUnwindProcess* claim(uint64_t pid) const;
  bool reserve(uint64_t pid, size_t count);
  uint32_t rule_index(const target::UnwindRule& rule);

  struct Maps {
    SharedArray processes;
    SharedArray segments;
    SharedArray files;
    SharedArray rows;
    SharedArray rules;
  };
  void begin_rules();

  std::optional<Maps> maps_;
  abi::MachineUnwindProcess* processes_ = nullptr;
  abi::MachineUnwindSegment* segments_ = nullptr;
  abi::MachineUnwindFile* files_ = nullptr;  // Null where nobody finds mappings of his own.
  abi::MachineUnwindRow* rows_ = nullptr;
  abi::MachineUnwindRule* rules_ = nullptr;
  size_t rows_max_ = 0;
  size_t rows_used_ = 0;
  uint32_t rules_used_ = 0;
  uint32_t segments_used_ = 0;
  std::unordered_multimap<uint64_t, uint32_t> rules_by_hash_;
  std::unordered_map<uint64_t, Room> rooms_;  // By pid.
  std::array<std::vector<uint32_t>, kClasses> free_;
};

}  // namespace clew::kernel
