// SPDX-License-Identifier: Apache-2.0
// What a call of one of a module's own functions may read of the general registers, and which it
// may change: itself, and in all that it calls. A compiler that sees both knows it as well, and
// keeps values in registers over such calls (-fipa-ra); it never counts on more than the callee's
// code does. Of calls that leave the module only the ABI is known.
#pragma once

#include <cstdint>
#include <span>

#include "code/blocks.h"
#include "code/flag_use.h"
#include "code/liveness.h"
#include "code/module_code.h"

namespace clew::code {

struct FunctionBlocks {
  uint32_t function = 0;  // In code.functions().
  const Blocks* blocks = nullptr;
};

// The functions whose blocks are given, each once and all whole; others are taken to read and
// change all. What they read is the least that fits: each is looked at again when a function that
// it calls turns out to read more.
CallEffects find_call_effects(const ModuleCode& code, FlagValues& flags,
                              std::span<const FunctionBlocks> functions);

}  // namespace clew::code
