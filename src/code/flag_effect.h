// SPDX-License-Identifier: Apache-2.0
// What one instruction reads and writes of the status flags. Which flags are values where is left
// to flag_use.h and liveness.h.
#pragma once

#include <cstdint>
#include <span>

namespace clew::code {

// Sets of flags, as in EFLAGS (Intel SDM, volume 1, 3.4.3).
using FlagSet = uint32_t;
inline constexpr FlagSet kStatusFlags = 0x8d5;  // CF PF AF ZF SF OF

struct FlagEffect {
  FlagSet read = 0;
  FlagSet written = 0;  // Whatever the operands are.
};

// All of them are read in doubt. Of one whole instruction, and so are the others.
FlagEffect flag_effect(std::span<const uint8_t> bytes);

// What the opcode alone says, without a full decoding: some are read, or all are written, or
// neither is sure.
enum class FlagUse : uint8_t { None, Reads, Writes };
FlagUse flag_use(std::span<const uint8_t> bytes);

// Moves, which are most of what stands at entries and behind calls, have nothing to do with flags:
// the opcode says it all.
bool is_plainly_neutral(std::span<const uint8_t> bytes);

}  // namespace clew::code
