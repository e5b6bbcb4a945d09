// SPDX-License-Identifier: Apache-2.0
// What a call of one of a module's own functions reads of the general registers, and what callers
// want behind it. A compiler that sees both keeps values over such calls in registers that the ABI
// lets the callee overwrite (-fipa-ra), and hand-written code has results in any. All of them are
// found where they are wanted: behind the calls. Whoever calls a function by a pointer or from
// another module counts on the ABI alone.
//
// Of r11, which the recorder wants, more is asked (value_use.h), as one function that reads it
// where nothing was written would take it from nearly all: no argument is in it where each read has
// a value of the function's own on other ways, and nobody writes it for the call. Nobody keeps it
// over a call of what calls through imports or pointers: compilers know that the callee may change
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/blocks.h"
#include "code/flag_use.h"
#include "code/liveness.h"
#include "code/module_code.h"

namespace clew::code {

struct ModuleEffects {
  CallEffects calls;
  std::vector<BlockEffects> blocks;  // As the functions were given.
};

// The functions whose blocks are given, each once; indirect jumps that stay in one lead to blocks
// that are `foreign` or that their edges name. Others are taken to read all, and
// to want all behind their calls. The answer is the least that fits.
ModuleEffects find_call_effects(const ModuleCode& code, FlagValues& flags,
                                std::span<const FunctionBlocks> functions);

}  // namespace clew::code
