// SPDX-License-Identifier: Apache-2.0
// The arguments of a static probe of a process (USDT): the text that its note has for them ("8@%rdi
// -4@-20(%rbp) 8@$5"), read and compiled for the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "kernel/bpf_object.h"

namespace clew::kernel {

// Where one argument is. A register is its word of struct pt_regs.
struct StaticPlace {
  struct Part {
    uint8_t word = 0;
    uint8_t shift = 0;  // 8 for %ah and its like.
  };
  std::optional<Part> base;   // Alone: the argument itself.
  std::optional<Part> index;  // Of memory: base + index * scale + offset.
  uint8_t scale = 1;
  bool is_memory = false;
  int64_t offset = 0;  // Without base and index: the constant.
};

// "%rdi", "$5", "-20(%rbp)", "8(%rax,%rbx,4)". Nothing for symbols and registers of vectors.
std::optional<StaticPlace> parse_static_place(std::string_view text);

// d_static_arguments(window): takes the registers from the scratch room (a struct pt_regs) and
// writes the arguments; memory that cannot be read is 0, and so are unreadable arguments.
Function make_static_arguments(std::string_view text);

// Arguments in places that no program of the kernel can read (registers of vectors), or of a form
// that is not known: bit i for arg<i>.
uint32_t unreadable_static_arguments(std::string_view text);

}  // namespace clew::kernel
