// SPDX-License-Identifier: Apache-2.0
// The interpreters that are known by what they export, and who reads their calls. Another one is a
// file such as python_calls.h, and a row here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "recorder/script_memory.h"
#include "recorder/scripts.h"

namespace clew::recorder {

// An interpreter in a process that stands still.
struct InterpreterAt {
  std::span<const uint64_t> places;  // Of InterpreterKind::exports; 0: there is no such thing.
  std::span<const int32_t> threads;  // The process's.
};

struct InterpreterKind {
  std::string_view name;
  std::span<const std::string_view> exports;  // It is known by the first one.
  // Adds the interpreter, and the stacks of the threads that run scripts; null: its calls are not
  // known.
  void (*read)(const InterpreterAt& at, ScriptMemory& memory, Scripts& scripts);
};

std::span<const InterpreterKind> interpreter_kinds();

// Adds the interpreter to `scripts`, at least by name.
void read_scripts(const InterpreterKind& kind, const InterpreterAt& at, ScriptMemory& memory,
                  Scripts& scripts);

}  // namespace clew::recorder
