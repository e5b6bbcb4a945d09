// SPDX-License-Identifier: Apache-2.0
// Which functions can run from a copy, and what a copier must know of them.
//
// A function is proved when it is known of every byte that control reaches that it is an
// instruction which does the same elsewhere, and of every jump where it goes:
//   - what is reached lies in the function's own ranges, and in no other function's;
//   - direct jumps stay in it, or go to the first instruction of another one;
//   - indirect jumps are switches over tables that are its own (switches.h), or leave it with the
//     stack as it was at entry;
//   - nobody takes the address of one of its instructions but such tables, exception tables, and
//     whoever calls it;
//   - no instruction asks where it is, and none enters the kernel: calls have return addresses in
//     the copy, which only unwinders look at.
// Everything else stays where it is, with the reason. The originals stay too, so who comes to one
// by a pointer, or jumps into the middle of one, finds what was there.
#pragma once

#include <cstdint>

#include <tl/expected.hpp>

#include "code/blocks.h"
#include "copy/facts.h"
#include "copy/reason.h"
#include "copy/switches.h"

namespace clew::copy {

struct Proved {
  uint32_t function = 0;  // In facts.code.functions().
  code::Blocks blocks;
  Switches switches;
};

// Of facts.code.functions()[function], which is no cold part.
tl::expected<Proved, Refusal> prove(const Facts& facts, uint32_t function);

// Does a call or jump lead to an import that looks at where it was called from?
[[nodiscard]] bool asks_caller(const Facts& facts, const code::Instruction& branch);

}  // namespace clew::copy
