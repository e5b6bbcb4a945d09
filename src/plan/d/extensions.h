// SPDX-License-Identifier: Apache-2.0
// Functions of extensions (extension/extension.h) that a script calls: their code and their
// variables. The program of a clause has a placeholder for each call,
//
//     r1 … = arguments ; call ; r6 = context ; the clause ends if the function ended the firing
//
// and the firing of a process has the function's code in its place (firing.h). The variables are
// words of the window, as private variables are: those of one thread, which a firing clears for
// another one. The kernel calls a function of its own there, with the thread's variables elsewhere
// (kernel/extensions.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "extension/extension.h"
#include "isa/inline_calls.h"
#include "query/d/script.h"
#include "query/d/source.h"

namespace clew::plan::d {

// A placeholder in a program. Behind its instruction is an LDDW of the context.
struct ExtensionCall {
  uint32_t instruction = 0;
  std::string function;
  uint32_t line = 0;  // Of the script.
};

struct ExtensionFunction {
  isa::Body body;  // With the places of its variables.
  uint32_t parameters = 0;
  bool has_loops = false;
};

struct ExtensionState {
  // In the window: the word of the thread's id, then the variables of all extensions.
  uint32_t begin = 0;
  uint32_t end = 0;
  std::vector<extension::InitialWord> initial_words;  // At offsets in the window.
  std::map<std::string, ExtensionFunction> functions;
  uint64_t fuel = extension::kFuel;  // Of a firing.

  [[nodiscard]] bool empty() const { return functions.empty(); }
  [[nodiscard]] bool has_loops() const;
  // Of a function, or of what its code calls.
  [[nodiscard]] const isa::Body* find_body(const std::string& function) const;
};

// A part of the window: [begin, end).
struct WindowRoom {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// What the script calls, with its variables in that room. Errors: D_FUNC_UNDEF when none of the
// extensions has a function, D_NOMEM when there is not room enough.
query::d::Compiled<ExtensionState> place_extensions(
    const query::d::Script& script, std::span<const extension::Extension> extensions,
    const WindowRoom& room);

// For a kernel that only looks at such a program, since processes run it: each call gives 0.
isa::Program without_calls(isa::Program program, std::span<const ExtensionCall> calls);

}  // namespace clew::plan::d
