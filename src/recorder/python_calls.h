// SPDX-License-Identifier: Apache-2.0
// The calls of Python functions, as CPython 3.11 has them: each thread state leads to the frame
// that runs, and each frame to its caller's. Frames say their code object and the instruction that
// runs in memory at all times, also while the interpreter's loop is in the middle of it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "recorder/interpreters.h"

namespace clew::recorder {

inline constexpr std::array<std::string_view, 6> kPythonExports = {
    "PyCode_Type",    "_PyRuntime",   "Py_Version",
    "PyUnicode_Type", "PyBytes_Type", "_PyEval_EvalFrameDefault"};

// Of a stack; deeper ones lose their outermost calls. The limit of Python itself is 1000, unless a
// program changes it.
inline constexpr size_t kPythonCallsMax = 2000;
// Of all stacks.
inline constexpr size_t kAllPythonCallsMax = 20'000;

void read_python_calls(const InterpreterAt& at, ScriptMemory& memory, Scripts& scripts);

}  // namespace clew::recorder
