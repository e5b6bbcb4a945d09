// SPDX-License-Identifier: Apache-2.0
// What a program looks at of the state of the program that it probes: words of the context, and
// memory by accessors. An upper bound, over all paths.
#pragma once

#include <cstdint>

#include "isa/program.h"

namespace clew::isa {

struct ContextReads {
  uint64_t words = 0;      // Bit i: word i of abi::Context.
  bool arguments = false;  // Words above Context::frame, as far as stack_arguments go, by accessor.
  bool memory = false;     // Anywhere else.
  bool unwinds = false;    // The stack of its caller.
  bool registers = false;  // Any, those that the stub has saved included.

  bool operator==(const ContextReads&) const = default;
};

// Of a program that the validator's probe rules hold for.
ContextReads context_reads(const Program& program);

}  // namespace clew::isa
