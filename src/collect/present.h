// SPDX-License-Identifier: Apache-2.0
// Which pages of a sparse memory file hold data. Reading a hole of a memfd through a mapping
// allocates a page; thousands of untouched slots must not, so the collector asks first.
#pragma once

#include <cstdint>
#include <vector>

namespace clew::collect {

struct PageRange {
  uint64_t begin;  // Byte offsets from the start of the slots.
  uint64_t end;
};

class PresentPages {
 public:
  // Without a file (-1) everything counts as present.
  PresentPages(int file, uint64_t file_offset, uint64_t size_bytes);
  // Asks the kernel again (lseek SEEK_DATA, SEEK_HOLE): data found before stays data.
  void refresh();
  // True when any byte of [begin, end) may be data.
  [[nodiscard]] bool any(uint64_t begin, uint64_t end) const;
  // The parts of [begin, end) that may hold data, ascending.
  [[nodiscard]] std::vector<PageRange> within(uint64_t begin, uint64_t end) const;

 private:
  int file_;
  uint64_t file_offset_;
  uint64_t size_bytes_;
  std::vector<PageRange> ranges_;
};

}  // namespace clew::collect
