// SPDX-License-Identifier: Apache-2.0
// A program as the translator reads it: one Operation per BPF instruction, fields widened, branch
// targets as indices, constants of the site and of the window filled in. Index i here is
// instruction i of the program; the second half of an LDDW is a Nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/accessor.h"
#include "base/error.h"
#include "isa/opcode.h"
#include "isa/program.h"
#include "native/code.h"

namespace clew::native {

enum class OperationKind : uint8_t {
  Nothing,
  Move,        // dst = src or immediate; 32-bit when not wide
  MoveSigned,  // dst = low size_bytes of src, sign-extended
  Binary,      // dst = dst alu (src or immediate)
  Negate,
  Swap,  // dst = low size_bytes of dst, zero-extended, bytes reversed when `reversed`
  Load,
  Store,
  Atomic,
  Branch,  // if dst jump (src or immediate) goto target
  Jump,
  Call,
  Exit,
};

struct Operation {
  OperationKind kind = OperationKind::Nothing;
  isa::Alu alu = isa::Alu::Add;
  isa::Jump jump = isa::Jump::Always;
  isa::Atomic atomic = isa::Atomic::Add;
  abi::Accessor accessor = abi::Accessor::Time;
  bool wide = true;          // 64-bit operation.
  bool is_signed = false;    // Signed division, or a sign-extending load.
  bool reversed = false;     // Of Swap.
  bool is_context = false;   // Of Move: dst = the context.
  bool has_source = false;   // The second operand is register `source`, else `immediate`.
  uint8_t destination = 0;   // BPF register.
  uint8_t source = 0;        // BPF register.
  uint8_t size_bytes = 8;    // Of a memory operand, Swap or MoveSigned.
  int32_t offset_bytes = 0;  // Of a memory operand.
  uint64_t immediate = 0;    // Sign-extended to 64 bits.
  uint32_t target = 0;       // Index of an operation.

  [[nodiscard]] bool is_division() const {
    return kind == OperationKind::Binary && (alu == isa::Alu::Divide || alu == isa::Alu::Modulo);
  }
  [[nodiscard]] bool is_shift() const {
    return kind == OperationKind::Binary &&
           (alu == isa::Alu::ShiftLeft || alu == isa::Alu::ShiftRight ||
            alu == isa::Alu::ShiftRightSigned);
  }
};

// Errors: InvalidQuery for what the instruction set does not have, a branch to no instruction, code
// that can run past its end, or a call that has no native form; the message names the instruction.
Expected<std::vector<Operation>> decode(const isa::Program& program, const Environment& environment,
                                        std::span<const uint64_t> site_constants);

// The BPF argument registers that an accessor reads, a bit each. Those of D know their window
// without being told it in r1.
uint16_t argument_registers(abi::Accessor accessor);

// Time, Cpu and BitLength need no call.
bool is_inline(abi::Accessor accessor);

}  // namespace clew::native
