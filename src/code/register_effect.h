// SPDX-License-Identifier: Apache-2.0
// What one instruction reads and writes of the general registers. Where control goes on, and what a
// function that is called there does, is left to liveness.h.
#pragma once

#include <cstdint>
#include <span>

#include "abi/stub.h"

namespace clew::code {

struct RegisterEffect {
  // What it does may depend on them.
  abi::RegisterSet read;
  // Nothing of their old values is left behind it, whatever the operands are: 32 or 64 bits.
  abi::RegisterSet written;
  // They may have other values behind it, as a whole or in part.
  abi::RegisterSet changed;
};

inline constexpr abi::RegisterSet kAllRegisters = abi::RegisterSet(0xffff);
// rbx, rsp, rbp, r12 to r15: what every function preserves.
inline constexpr abi::RegisterSet kOfCaller = abi::RegisterSet(0xf038);

constexpr abi::RegisterSet operator|(abi::RegisterSet a, abi::RegisterSet b) {
  return abi::RegisterSet(static_cast<uint16_t>(a.bits() | b.bits()));
}

// Of one whole instruction. Reads and changes all, and writes none, when it is not understood.
RegisterEffect register_effect(std::span<const uint8_t> bytes);

}  // namespace clew::code
