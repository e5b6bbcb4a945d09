// SPDX-License-Identifier: Apache-2.0
// Ticks of the processor's counter in programs.
#pragma once

#include <cstdint>

#include "isa/builder.h"

namespace clew::plan {

// r0 = r0 ticks in nanoseconds, which are ticks * r2 >> shift; in two parts, so that no span
// overflows. Changes r1.
inline void scale_ticks(isa::Builder& builder, uint32_t shift) {
  using isa::Alu;
  using isa::Register;
  const auto bits = static_cast<int32_t>(shift);
  builder.move(Register::R1, Register::R0)
      .alu(Alu::ShiftRight, Register::R1, 32)
      .move(Register::R0, Register::R0, isa::Width::Bits32)
      .alu(Alu::Multiply, Register::R1, Register::R2)
      .alu(Alu::ShiftLeft, Register::R1, 32 - bits)
      .alu(Alu::Multiply, Register::R0, Register::R2)
      .alu(Alu::ShiftRight, Register::R0, bits)
      .alu(Alu::Add, Register::R0, Register::R1);
}

}  // namespace clew::plan
