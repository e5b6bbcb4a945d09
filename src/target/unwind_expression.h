// SPDX-License-Identifier: Apache-2.0
// DWARF expressions in call frame information, as far as compilers, linkers and assembler code make
// them: a register and an offset, what is loaded there, and the linker's one for the PLT. DWARF 5,
// section 2.5. Internal to target/.
#pragma once

#include <cstdint>
#include <span>

#include "target/unwind_rows.h"

namespace clew::target {

// DWARF's numbers of rsp and rbp.
inline constexpr uint8_t kSpColumn = 7;
inline constexpr uint8_t kFpColumn = 6;

// As the fields of UnwindRule; kind is Base, Plt or Unsupported.
struct CfaExpression {
  UnwindKind kind = UnwindKind::Unsupported;
  uint8_t base = 0;
  bool is_loaded = false;
  int32_t offset = 0;
  int32_t second_offset = 0;
};

CfaExpression read_cfa_expression(std::span<const uint8_t> bytes);

// Where a register was saved, by DW_CFA_expression. Lost when it is another form.
SavedRegister read_saved_expression(std::span<const uint8_t> bytes);

}  // namespace clew::target
