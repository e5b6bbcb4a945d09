// SPDX-License-Identifier: Apache-2.0
// Bytes that serve both ways: what may stand over a function's first instruction although a uprobe
// of somebody else may come there, for probes that read what this instruction changes. It has two
// to four bytes, b0 b1 b2 b3; they become (66 = a prefix that does nothing here, as many as are
// missing; f9 = stc)
//
//     function:      a9 b1 b2 b3 f9   test eax, imm32      clears the carry flag
//     function + 5:  e9 …             jmp trampoline       jc behind ; probes ; copy of all
//
// The kernel (or a debugger) that has its trap at the first byte executes the file's instruction
// elsewhere, and goes on behind it; and when it leaves, it writes back b0. Then there is
//
//     function:      b0 b1 b2 b3      the file's first instruction, done
//     function + 4:  f9               stc
//     function + 5:  e9 …             jmp trampoline       jc behind ; the first is not done again
//
// So the carry flag says which way a thread has come, whatever it was before: both instructions
// write it. Only b0 is ever another byte than the kernel thinks. The five bytes of a thread that
// comes from the first byte are one instruction, and so is what it meets behind the file's; nobody
// reads flags there (flag_use.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "code/window.h"

namespace clew::code {

// Is the first instruction of `bytes` of such a length, and may it be done in its place, as far as
// a probe is concerned that reads nothing (kept_instruction.h)?
bool can_serve_both(std::span<const uint8_t> bytes);

// Whether a thread with these flags, at the jump or at the first instruction of what it leads to,
// has done the first instruction.
constexpr bool has_done_first(uint64_t flags) {
  return (flags & 1) != 0;  // CF
}

// What stands in front of the jump, over a first instruction of `length` bytes.
std::array<uint8_t, kMarkSizeBytes> mark_over(std::span<const uint8_t> original, uint8_t length);

}  // namespace clew::code
