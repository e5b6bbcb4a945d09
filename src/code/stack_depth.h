// SPDX-License-Identifier: Apache-2.0
// How deep the stack is at an instruction of a function: a small abstract interpretation of push,
// pop, add, sub, lea and leave along direct jumps and switch tables. It tells a tail call (depth 0)
// from a jump inside a function. Whatever it does not follow makes the depth unknown.
//
// A call may not return, and then the depth behind it belongs to other code. So an instruction that
// is also a branch target gets its depth from the branch, and from the call before it only when
// nothing else leads there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "code/module_code.h"

namespace clew::code {

// Bytes below the stack pointer's value at entry; unknown values are absent.
struct StackState {
  std::optional<int64_t> depth = 0;
  std::optional<int64_t> frame;  // Of rbp, when it was set from rsp.
  std::optional<int64_t> probe;  // Of r11, when it was set from rsp: the end of a stack probe loop.
};

class StackDepths {
 public:
  StackDepths(const ModuleCode& code, uint32_t function);

  // Before the instruction at `address`; nothing when it is unknown or was not reached.
  [[nodiscard]] std::optional<int64_t> at(uint64_t address) const;

 private:
  struct Work {
    uint64_t address;
    StackState state;
  };

  [[nodiscard]] std::optional<size_t> index_of(uint64_t address) const;
  void follow(Work work);
  void branch_to(uint64_t target, const StackState& state);

  const ModuleCode& code_;
  std::vector<AddressRange> parts_;
  std::vector<size_t> first_index_;  // Of each part's first byte.
  std::vector<bool> seen_;
  std::vector<std::optional<int64_t>> depths_;
  std::vector<Work> pending_;
  std::vector<Work> behind_calls_;
};

// The state behind `bytes`, one whole instruction that is no branch.
StackState apply(std::span<const uint8_t> bytes, StackState state);

}  // namespace clew::code
