// SPDX-License-Identifier: Apache-2.0
// The tables of abi/d_unwind.h in maps of one session: rows of files are put in once, the segments
// of processes as they change. Nothing is ever taken from the rows: when they are full, later files
// have none, and their frames are found by frame pointers. Internal to user_stacks.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "abi/d_unwind.h"
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
  void add_symbols(Symbols& symbols) const;

  // Without rows when there is no room, or when they do not fit a table.
  Place add(const target::UnwindRows& rows);
  // For mappings of the file that are not in a process's segments yet.
  void add(const abi::DUnwindFile& file);
  // Whether the process's segments are others than before. `program`: the inode that it runs.
  bool put(uint64_t pid, uint64_t program, const std::vector<abi::DUnwindSegment>& segments);
  void remove(uint64_t pid);
  // The process may ask for another look.
  void allow_questions(uint64_t pid);

 private:
  static constexpr size_t kClasses = 16;  // Of sizes: 1 << class segments.

  struct Room {
    uint32_t first = 0;
    uint32_t size_class = 0;
  };

  abi::DUnwindProcess* find(uint64_t pid) const;
  abi::DUnwindProcess* claim(uint64_t pid) const;
  bool reserve(uint64_t pid, size_t count);
  uint32_t rule_index(const target::UnwindRule& rule);

  SharedArray processes_;
  SharedArray segments_;
  SharedArray files_;
  SharedArray rows_;
  SharedArray rules_;
  size_t rows_max_ = 0;
  size_t rows_used_ = 0;
  uint32_t rules_used_ = 0;
  uint32_t segments_used_ = 0;
  std::unordered_multimap<uint64_t, uint32_t> rules_by_hash_;
  std::unordered_map<uint64_t, Room> rooms_;  // By pid.
  std::array<std::vector<uint32_t>, kClasses> free_;
};

}  // namespace clew::kernel
