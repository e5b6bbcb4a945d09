// SPDX-License-Identifier: Apache-2.0
// The functions of a BPF object file, each with its code and what its code refers to; and the
// object that is built in: the D accessors (runtime/kernel).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
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

// Errors: Refused when it is none of ours; it is trusted otherwise.
Expected<Functions> read_bpf_object(std::span<const uint8_t> object);

// How the kernel's verifier deals with loops (abi/d_loop.h).
enum class LoopKind : uint8_t { Open, Counted };

// The accessors, read once. Any thread.
const Functions& accessor_functions(LoopKind loops);

}  // namespace clew::kernel
