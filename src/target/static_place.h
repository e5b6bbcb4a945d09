// SPDX-License-Identifier: Apache-2.0
// Where the arguments of static probes are, as the assembler wrote it into their notes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace clew::target {

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

}  // namespace clew::target
