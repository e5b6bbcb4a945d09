// SPDX-License-Identifier: Apache-2.0
// The calls of scripts that threads were in at the moment of a snap, as their interpreters had them
// in memory: beside the native stack, on which there is only the interpreter's loop, over and over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clew::recorder {

struct Interpreter {
  std::string name;     // "Python 3.11.2".
  std::string problem;  // Why its calls are not known; empty: they are.
  // Of the function that runs scripts, in the process; 0: not known.
  uint64_t loop = 0;

  bool operator==(const Interpreter&) const = default;
};

struct ScriptFunction {
  std::string name;
  std::string file;  // As the interpreter has it; it may be none ("<string>").

  bool operator==(const ScriptFunction&) const = default;
};

struct ScriptCall {
  uint32_t function = 0;  // In Scripts::functions.
  uint32_t line = 0;      // That it is in; 0: not known.
  // The interpreter's loop was called for it. Else the loop that runs its caller runs it, too.
  bool is_loops_first = false;

  bool operator==(const ScriptCall&) const = default;
};

struct ScriptStack {
  int32_t thread = 0;
  uint32_t interpreter = 0;       // In Scripts::interpreters.
  std::vector<ScriptCall> calls;  // The innermost first.
  bool is_whole = false;          // Else outer ones are missing.

  bool operator==(const ScriptStack&) const = default;
};

struct Scripts {
  std::vector<Interpreter> interpreters;
  std::vector<ScriptFunction> functions;
  std::vector<ScriptStack> stacks;

  bool operator==(const Scripts&) const = default;
};

// All numbers lead somewhere, and no text would disturb a terminal.
bool is_sound(const Scripts& scripts);
// It has no control characters.
bool is_plain_text(std::string_view text);

}  // namespace clew::recorder
