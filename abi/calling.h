// SPDX-License-Identifier: Apache-2.0
// How a verified body calls an accessor: `call rel32` to an exact entry of the runtime's thunk
// table. The thunk takes BPF r1..r5 in the registers below, answers in rax, and keeps every general
// register but those of changed_by(), the stack above its return address and DF; the status flags
// are dead.
//
// rsp is aligned to 8 at a call (the stub pushes any number of words). The words below rsp are free
// at entry and exit points, and at offset points after the stub has skipped the red zone. Context
// arguments are in rdi, rsi, rdx, rcx, r8, r9 and often still live there, so none of these carries
// an argument of an accessor.
#pragma once

#include <array>
#include <cstdint>

#include "abi/accessor.h"
#include "abi/stub.h"

namespace clew::abi {

// Index = BPF register r0..r5.
inline constexpr std::array<Register, 6> kCallRegisters = {
    Register::Rax,  // r0: the result.
    Register::R11,  // r1
    Register::Rbx,  // r2
    Register::R12,  // r3
    Register::R14,  // r4
    Register::R15,  // r5
};

// What a call of this accessor may change: divisions and the accessors of D nothing but the result;
// the others also the scratch register r10 and the registers of their arguments, which BPF leaves
// undefined. The stub has saved them, so a thunk need not: probes take little of the program's
// stack.
constexpr RegisterSet changed_by(uint32_t accessor) {
  RegisterSet set;
  set.add(Register::Rax);
  if (accessor < static_cast<uint32_t>(Accessor::TryRead) || accessor >= kAccessorCount) return set;
  set.add(Register::R10);
  set.add(Register::R11);
  if (accessor >= static_cast<uint32_t>(Accessor::RecordPut)) return set;
  set.add(Register::Rbx);
  set.add(Register::R12);
  return set;
}

// Holds the remaining fuel in bodies with loops. An accessor keeps it like any other register.
inline constexpr Register kFuelRegister = Register::R13;

// One accessor call is charged like this many instructions of a loop.
inline constexpr uint32_t kCallFuel = 64;

}  // namespace clew::abi
