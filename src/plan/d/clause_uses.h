// SPDX-License-Identifier: Apache-2.0
// What a clause's program looks at, found by reading it: the engine of processes needs to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "isa/program.h"

namespace clew::plan::d {

inline constexpr uint32_t kProbeArguments = 10;  // arg0 to arg9

struct ClauseUses {
  uint32_t arguments = 0;            // Bit i: arg<i>.
  bool needs_registers = false;      // ustack(), ucaller, uregs[], arguments on the stack.
  bool needs_kernel = false;         // What only the kernel can give.
  bool walks_user_stack = false;     // ustack(), ucaller, ustackdepth
  bool has_kernel_constant = false;  // The address of a variable of the kernel, perhaps.
  bool follows_pointers = false;     // Loads by a pointer that is not known to be the window's, nor
                                     // meant to be the process's.
  bool follows_user_pointers = false;  // Loads by one that is meant to be the process's.
  bool reads_variables = false;        // Global, thread-local or associative ones.

  ClauseUses& operator|=(const ClauseUses& other);
};

ClauseUses uses_of(const isa::Program& program);

// Whether the instruction, a call, is one of an extension's function (extensions.h).
bool calls_function(const isa::Instruction& call);

// The constant in a BPF register at the call at `call`, when the straight line in front of it loads
// one.
std::optional<uint64_t> constant_before(const isa::Program& program, size_t call, uint8_t in);

}  // namespace clew::plan::d
