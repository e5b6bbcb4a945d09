// SPDX-License-Identifier: Apache-2.0
// What a copy has and its original has not: probes, which are bytes that run wherever they stand,
// and go on behind themselves; and shorter ways to functions.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace clew::copy {

inline constexpr size_t kInsertionBytesMax = 250;  // An item's size is a byte.

// What of the things in front of its target a way passes by.
enum class Past : uint8_t { Nothing, Entry, Everything };

struct Insertions {
  // In front of the instruction at this address, whatever way control comes to it.
  std::unordered_map<uint64_t, std::vector<uint8_t>> before;
  // Behind a conditional jump: when it is taken, or when it is not. By the jump's address. The last
  // also behind a call that comes back.
  std::unordered_map<uint64_t, std::vector<uint8_t>> taken;
  std::unordered_map<uint64_t, std::vector<uint8_t>> passed;
  // In front of a function's first instruction and what is in front of that, for whoever comes from
  // outside, but for calls and jumps of `carriers`, which carry a register over. All by the
  // functions' addresses.
  std::unordered_map<uint64_t, std::vector<uint8_t>> entry;
  std::unordered_set<uint64_t> carriers;
  // Jumps that lead behind what is in front of their target, and instructions that run on there.
  std::unordered_set<uint64_t> leaping;
  std::unordered_set<uint64_t> running_over;
  // Direct calls and jumps that lead to another function than they say, as the stub that they lead
  // to does: by their addresses, the function's.
  std::unordered_map<uint64_t, uint64_t> shortcuts;

  // Where that branch, which leads to `target`, leads in a copy: an original, too.
  [[nodiscard]] uint64_t target_of(uint64_t branch, uint64_t target) const {
    const auto found = shortcuts.find(branch);
    return found == shortcuts.end() ? target : found->second;
  }
};

}  // namespace clew::copy
