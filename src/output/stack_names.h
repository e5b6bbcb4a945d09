// SPDX-License-Identifier: Apache-2.0
// Stacks as frames with names, for queries and D: one rule for what lies between two calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/value.h"
#include "target/symbolizer.h"

namespace clew::output {

// One address of a stack. `is_call`: it is where a call returns to, so that its code is before it:
// a call that does not return may be the last instruction of its function.
struct StackAddress {
  uint64_t process = 0;  // 0: the kernel's.
  uint64_t address = 0;
  bool is_call = false;

  [[nodiscard]] uint64_t code() const { return is_call ? address - 1 : address; }
};

// `words`: as abi/query_window.h says: the process, then addresses up to the first 0.
std::vector<StackAddress> stack_addresses(const target::Symbolizer& symbols,
                                          std::span<const uint64_t> words);

// The function around it, with the offset of `address` itself.
std::optional<target::SymbolPlace> place_of(const target::Symbolizer& symbols,
                                            const StackAddress& at);

// Remembers the frames of each place in a file.
class StackNames {
 public:
  // Borrowed.
  explicit StackNames(const target::Symbolizer& symbols) : symbols_(symbols) {}

  using Frames = std::vector<aggregate::Frame>;

  // `words`: as above. Empty for a thread that has no such stack.
  aggregate::Stack named(std::span<const uint64_t> words);
  // Its parts: several frames where calls were inlined.
  [[nodiscard]] std::vector<StackAddress> addresses(std::span<const uint64_t> words) const {
    return stack_addresses(symbols_, words);
  }
  [[nodiscard]] bool is_signal_return(const StackAddress& at) const {
    return at.process != 0 && symbols_.is_signal_return(at.process, at.address);
  }
  Frames frames(const StackAddress& at);

 private:
  [[nodiscard]] Frames made(const StackAddress& at) const;

  const target::Symbolizer& symbols_;
  // By where the code is and is_call: what an address of a process means changes with exec.
  std::map<std::pair<target::CodePlace, bool>, Frames> known_;
  std::map<std::pair<uint64_t, bool>, Frames> in_kernel_;
};

}  // namespace clew::output
