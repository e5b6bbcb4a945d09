// SPDX-License-Identifier: Apache-2.0
#include "recorder/interpreters.h"

#include <array>

#include "recorder/python_calls.h"

namespace clew::recorder {

namespace {

constexpr std::array<std::string_view, 1> kLuaExports = {"lua_newstate"};
constexpr std::array<std::string_view, 1> kPerlExports = {"perl_construct"};
constexpr std::array<std::string_view, 1> kRubyExports = {"ruby_init"};
constexpr std::array<std::string_view, 1> kPhpExports = {"zend_execute_ex"};

constexpr std::array kKinds = {
    InterpreterKind{.name = "Python", .exports = kPythonExports, .read = read_python_calls},
    InterpreterKind{.name = "Lua", .exports = kLuaExports, .read = nullptr},
    InterpreterKind{.name = "Perl", .exports = kPerlExports, .read = nullptr},
    InterpreterKind{.name = "Ruby", .exports = kRubyExports, .read = nullptr},
    InterpreterKind{.name = "PHP", .exports = kPhpExports, .read = nullptr},
};

}  // namespace

std::span<const InterpreterKind> interpreter_kinds() {
  return kKinds;
}

void read_scripts(const InterpreterKind& kind, const InterpreterAt& at, ScriptMemory& memory,
                  Scripts& scripts) {
  if (kind.read != nullptr) {
    kind.read(at, memory, scripts);
  } else {
    scripts.interpreters.push_back(
        {.name = std::string(kind.name), .problem = "only those of Python are"});
  }
}

}  // namespace clew::recorder
