// SPDX-License-Identifier: Apache-2.0
// What a probe at an entry looks at of the program's state. An instruction that changes nothing of
// it may have been executed already (kept_instruction.h).
#pragma once

#include <cstdint>

#include "abi/stub.h"

namespace clew::code {

struct ProbeReads {
  abi::RegisterSet registers;
  uint16_t vectors = 0;  // By number.
  bool stack = false;    // The return address and the arguments above it.
  bool memory = false;   // Of the program, anywhere.

  bool operator==(const ProbeReads&) const = default;
};
inline constexpr ProbeReads kReadsNothing = {};
inline constexpr ProbeReads kReadsEverything = {abi::RegisterSet(0xffff), 0xffff, true, true};

}  // namespace clew::code
