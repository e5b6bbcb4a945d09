// SPDX-License-Identifier: Apache-2.0
// The functions of the BPF objects that are built in (the D accessors, runtime/kernel), each with
// its code and what its code refers to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "isa/inline_calls.h"

namespace clew::kernel {

using isa::Reference;

// A function's code and what it refers to. Its parameters are numbers, except for a first one that
// is the window; a main program's only one is its context. A callback is called by the kernel with
// what its helper says.
struct Function : isa::Body {
  std::string name;
  uint32_t parameters = 1;
  bool is_main = false;
  bool is_callback = false;
};

using Functions = std::map<std::string, Function, std::less<>>;

// How the kernel's verifier deals with loops (abi/machine/loop.h).
enum class LoopKind : uint8_t { Open, Counted };

// The accessors for one way, read when they are first asked for. Any thread.
const Functions& accessor_functions(LoopKind loops);

}  // namespace clew::kernel
