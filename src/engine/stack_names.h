// SPDX-License-Identifier: Apache-2.0
// Stacks of events as frames with names. Each place in a file is looked up once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/value.h"
#include "target/live_symbolizer.h"

namespace clew::engine {

class StackNames {
 public:
  // Borrowed.
  explicit StackNames(const target::LiveSymbolizer& symbols) : symbols_(symbols) {}

  // `words`: as abi/query_window.h says. Empty for a thread that has no such stack.
  aggregate::Stack named(std::span<const uint64_t> words);

 private:
  using Frames = std::vector<aggregate::Frame>;

  // Of one address. `is_call`: it is where a call returns to, so that its code is before it.
  struct Address {
    uint64_t process = 0;
    uint64_t address = 0;
    bool is_call = false;
  };
  Frames frames(const Address& of);
  [[nodiscard]] Frames made(const Address& of) const;
  [[nodiscard]] Frames made_in_kernel(const Address& of) const;

  const target::LiveSymbolizer& symbols_;
  // By where the code is and is_call: what an address of a process means changes with exec.
  std::map<std::pair<target::LiveSymbolizer::CodePlace, bool>, Frames> known_;
  std::map<std::pair<uint64_t, bool>, Frames> in_kernel_;
};

}  // namespace clew::engine
