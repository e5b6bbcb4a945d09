// SPDX-License-Identifier: Apache-2.0
// Any text assembles or gives an error with a place, and what assembles to a valid program prints
// to text that assembles to the same code.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "isa/assembler.h"
#include "isa/print.h"
#include "isa/validator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using clew::Expected;
  using clew::isa::Program;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Expected<Program> program = clew::isa::assemble(text);
  if (!program) {
    CLEW_ASSERT(program.error().message.find("error: ") != std::string::npos);
    return 0;
  }
  const std::string printed = clew::isa::print(*program);
  if (!clew::isa::validate(*program)) return 0;
  const Expected<Program> again = clew::isa::assemble(printed);
  CLEW_ASSERT(again.has_value());
  CLEW_ASSERT(*again == *program);
  return 0;
}
