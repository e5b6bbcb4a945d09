// SPDX-License-Identifier: Apache-2.0
// TextImage: pages of a stopped target's text, read once, compared and changed here. Only what has
// changed is written back: the kernel sets and removes uprobes in processes that are stopped, too,
// and a trap of one that has just gone would kill the process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "inline/stopped_target.h"

namespace clew::inline_ {

class TextImage {
 public:
  // The pages of [address, address + size). What cannot be read is absent.
  struct Range {
    uint64_t address = 0;
    uint32_t size = 0;
  };
  explicit TextImage(std::span<const Range> ranges);
  void load(const StoppedTarget& target);

  [[nodiscard]] bool equals(uint64_t address, std::span<const uint8_t> bytes) const;
  // Each byte equals one of the two: what a write that was cut off by our death may leave. Or it is
  // the trap of a breakpoint, which stands where an instruction begins: whoever set it will write
  // back the file's byte.
  [[nodiscard]] bool is_mix_of(uint64_t address, std::span<const uint8_t> a,
                               std::span<const uint8_t> b) const;
  void change(uint64_t address, std::span<const uint8_t> bytes);
  // Leaves a trap of somebody else at the first byte as it is. In one piece: we may be killed.
  void change_but_traps(uint64_t address, std::span<const uint8_t> file,
                        std::span<const uint8_t> bytes);

  // In the order of the changes, but those that cross a page's end are written last, when both
  // pages are private copies already: the kernel looks for a fatal signal between two pages, and
  // this keeps that moment as short as it can be.
  Expected<void> flush(const StoppedTarget& target) const;

 private:
  struct Page {
    uint64_t address = 0;
    bool present = false;
  };
  struct Change {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
    // A trap that has come to the first byte since load() stays: the kernel sets uprobes in
    // processes that are stopped, too.
    bool spares_trap = false;
  };
  [[nodiscard]] size_t index_of(uint64_t address) const;
  [[nodiscard]] const uint8_t* byte_at(uint64_t address) const;
  void read_run(const StoppedTarget& target, size_t first, size_t count);

  std::vector<Page> pages_;     // Ascending.
  std::vector<uint8_t> bytes_;  // Of all pages.
  std::vector<Change> changes_;
};

}  // namespace clew::inline_
