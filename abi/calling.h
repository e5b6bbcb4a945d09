// SPDX-License-Identifier: Apache-2.0
// How a verified body calls an accessor: `call rel32` to an exact entry of the runtime's thunk
// table. The thunk takes BPF r1..r5 in the registers below, answers in rax, and keeps every other
// general register, the stack above its return address and DF; the status flags are dead.
//
// rsp is not aligned at a call (the stub pushes any number of words): the thunk aligns it itself.
// The words below rsp are free at entry and exit points, and at offset points after the stub has
// skipped the red zone. Context arguments are in rdi, rsi, rdx, rcx, r8, r9 and often still live
// there, so none of these carries an argument of an accessor; r12, rbx, r14, r15 are kept by C code
// anyway (System V ABI), so a thunk need not save them.
#pragma once

#include <array>
#include <cstdint>

#include "abi/stub.h"

namespace clew::abi {

// Index = BPF register r0..r5.
inline constexpr std::array<Register, 6> kCallRegisters = {
    Register::Rax,  // r0: the result; the only register that a thunk changes.
    Register::R11,  // r1
    Register::Rbx,  // r2
    Register::R12,  // r3
    Register::R14,  // r4
    Register::R15,  // r5
};

// Holds the remaining fuel in bodies with loops. An accessor keeps it like any other register.
inline constexpr Register kFuelRegister = Register::R13;

// One accessor call is charged like this many instructions of a loop.
inline constexpr uint32_t kCallFuel = 64;

}  // namespace clew::abi
