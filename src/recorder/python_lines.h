// SPDX-License-Identifier: Apache-2.0
// The lines of a Python function's instructions, as its code object has them since 3.11
// (co_linetable; PEP 626 and 657, Objects/locations.md). Entries lie behind each other:
//
//     1 kkkk lll     kind k, for l + 1 code units of 2 bytes
//     …              what the kind has, in bytes without the high bit
//
// Of kinds 13 and 14 that begins with how many lines it goes on, 10 to 12 go on by 0 to 2 lines, 15
// has no line, and all others stay in theirs. Numbers have 6 bits a byte, the lowest first, and bit
// 6 where another byte follows; of those with a sign, it is bit 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace clew::recorder {

inline constexpr uint32_t kPythonUnitBytes = 2;  // Of code.

class PythonLines {
 public:
  // Whatever the table is, up to 64 MiB.
  PythonLines(std::span<const uint8_t> table, int32_t first_line);

  // Of the instruction so many bytes behind the first; 0: it has none, or that is not known.
  [[nodiscard]] uint32_t at(uint64_t offset) const;

 private:
  struct Range {
    uint32_t end = 0;  // In bytes.
    uint32_t line = 0;
  };
  std::vector<Range> ranges_;
};

}  // namespace clew::recorder
