// SPDX-License-Identifier: Apache-2.0
// Length, control flow and displacement fields of one instruction: all that the linear sweep needs.
//
// A table covers the common integer and SSE encodings in about 10 ns; everything else goes to Zydis
// (about 90 ns). The table accepts only what Zydis accepts, with the same answer; a test compares
// the two over the distribution's binaries and over random bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "code/module_code.h"

namespace clew::code {

inline constexpr unsigned kInstructionSizeMax = 15;

struct Decoded {
  uint8_t length = 0;
  Flow flow = Flow::Next;
  bool rip_relative = false;
  uint8_t displacement_offset = 0;  // 0 = none. 1, 4 or 8 bytes.
  uint8_t displacement_size = 0;
  uint8_t immediate_offset = 0;  // Of the last immediate, or of a branch's displacement; 0 = none.
  uint8_t immediate_size = 0;
};

// The instruction at the start of `bytes`; nothing when it is none or runs over their end.
std::optional<Decoded> decode(std::span<const uint8_t> bytes);

// The same, by Zydis alone: the reference for tests.
std::optional<Decoded> decode_with_zydis(std::span<const uint8_t> bytes);

// Of the opcode of one whole instruction: the first byte that is neither a legacy prefix nor REX. A
// REX counts only directly in front of it; elsewhere it is void, and may stand anywhere.
unsigned opcode_offset(std::span<const uint8_t> bytes);

// The signed little-endian field of `size` (1, 2, 4 or 8) bytes at `offset`.
int64_t signed_field(std::span<const uint8_t> bytes, unsigned offset, unsigned size);

}  // namespace clew::code
