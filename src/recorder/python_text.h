// SPDX-License-Identifier: Apache-2.0
// Strings of CPython 3.11 -> UTF-8 (PEP 393; Include/cpython/unicodeobject.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "recorder/script_memory.h"

namespace clew::recorder {

class PythonText {
 public:
  static constexpr uint64_t kObjectBytes = 80;      // sizeof(PyUnicodeObject)
  static constexpr uint64_t kCharactersMax = 1024;  // Of longer ones the rest is left out.

  // `type`: the address of PyUnicode_Type.
  PythonText(ScriptMemory& memory, uint64_t type) : memory_(memory), type_(type) {}

  // Without control characters. Nothing when there is none.
  std::optional<std::string> read(uint64_t object);

 private:
  ScriptMemory& memory_;
  uint64_t type_;
};

}  // namespace clew::recorder
