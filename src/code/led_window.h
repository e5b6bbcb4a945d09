// SPDX-License-Identifier: Apache-2.0
// A window whose jump leads to other code than the copy of its instructions. That copy is
// somewhere, too: for a thread that stands in the window as the jump is written, and for who is not
// to run the other code.
#pragma once

#include <cstdint>
#include <vector>

#include "code/relocate.h"
#include "code/window.h"

namespace clew::code {

struct LedWindow {
  Window window;
  uint64_t load_bias = 0;
  std::vector<Patch> patches;             // As Relocated has them.
  uint64_t copy = 0;                      // Of its instructions; load time.
  std::vector<Boundary> boundaries = {};  // Of that copy.

  [[nodiscard]] uint64_t address() const { return window.address + load_bias; }
  // Behind its last instruction.
  [[nodiscard]] uint64_t end() const { return address() + window.size_bytes; }
};

}  // namespace clew::code
