// SPDX-License-Identifier: Apache-2.0
// Stacks of events as frames with names. Each address of a process is looked up once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
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

  // `is_call`: the address is where a call returns to, so that its code is before it. Several where
  // calls were inlined.
  const Frames& frames(uint64_t process, uint64_t address, bool is_call);
  [[nodiscard]] Frames made(uint64_t process, uint64_t address, bool is_call) const;

  const target::LiveSymbolizer& symbols_;
  std::map<std::tuple<uint64_t, uint64_t, bool>, Frames> known_;
};

}  // namespace clew::engine
