// SPDX-License-Identifier: Apache-2.0
// Code that a copy has and its original has not: probes. They are bytes that run wherever they
// stand, and go on behind themselves.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace clew::copy {

inline constexpr size_t kInsertionBytesMax = 120;

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
  // outside, but for calls and jumps of these functions, which carry a register over. All by the
  // functions' addresses.
  std::unordered_map<uint64_t, std::vector<uint8_t>> entry;
  std::unordered_set<uint64_t> carriers;
  // Jumps that lead behind what is in front of their target, and instructions that run on there.
  std::unordered_set<uint64_t> leaping;
  std::unordered_set<uint64_t> running_over;
};

}  // namespace clew::copy
