// SPDX-License-Identifier: Apache-2.0
// Puts the code of functions where they are called. Programs of queries and of extensions have no
// calls of functions of their own left when an engine gets them; in the kernel short accessors
// stand in their callers, because where the processor's returns are mitigated a call and its return
// take 7 to 14 ns, as much as all that most accessors do (bench/run build/release --only d).
//
//     [frame - 8] = r6 … ; the function's code, its frame below, each exit a jump here ; r6 = …
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isa/program.h"

namespace clew::isa {

// A call of a function, or an LDDW of a symbol's address (what is added to it is in its immediate).
struct Reference {
  uint32_t instruction = 0;
  bool is_call = false;
  std::string symbol;
};

// The code of a function, and what it refers to.
struct Body {
  std::vector<Instruction> code;
  std::vector<Reference> references;
};

// The body of a function by its name, or null.
using FindBody = std::function<const Body*(const std::string&)>;

struct InlineLimits {
  // In one function: with each the kernel's verifier has more paths to walk.
  uint32_t calls_max = 24;
  int32_t frame_bytes_max = 384;  // Of the kernel's 512; what is called has some, too.
};

// `wants` says which functions are to stand in their callers; none may call itself. Where the
// result would be too large for a frame or a jump, the call stays, or the body comes back as it is.
Body with_inlined_calls(const Body& body, const FindBody& find,
                        const std::function<bool(std::string_view)>& wants,
                        const InlineLimits& limits = {});

// How much of its frame the code uses, in bytes below r10. None when an address in the frame is
// made in a way that is not known.
std::optional<int32_t> frame_bytes(const std::vector<Instruction>& code);

}  // namespace clew::isa
