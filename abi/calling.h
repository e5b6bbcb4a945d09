// SPDX-License-Identifier: Apache-2.0
// How a verified body calls an accessor: `call rel32` to an exact entry of the runtime's thunk
// table, its door. It takes BPF r1..r5 in the registers below, answers in rax, and keeps every
// general register but those of changed_by(), the stack above its return address and DF; the status
// flags are dead.
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

// Accessors that are C code have two doors. Behind the keeping one, whose index is the accessor's
// number, the thunk saves what the C code may change. Behind the sparing one nothing is saved: a
// body that calls there has a stub that saves these registers, once for both, and takes less of the
// program's stack where it is of many parts.
enum class Doors : uint8_t { Keeping, Sparing };
inline constexpr uint32_t kSparingDoorsBegin = kAccessorCount;
inline constexpr uint32_t kDoorCount = 25;

constexpr bool has_sparing_door(uint32_t accessor) {
  return accessor >= static_cast<uint32_t>(Accessor::TryRead) &&
         accessor <= static_cast<uint32_t>(Accessor::RecordDrop);
}
constexpr uint32_t door_of(uint32_t accessor, Doors doors) {
  const bool is_sparing = doors == Doors::Sparing && has_sparing_door(accessor);
  return is_sparing ? accessor + kSparingDoorsBegin - static_cast<uint32_t>(Accessor::TryRead)
                    : accessor;
}
static_assert(door_of(static_cast<uint32_t>(Accessor::RecordDrop), Doors::Sparing) ==
              kDoorCount - 1);

constexpr bool is_sparing_door(uint32_t door) {
  return door >= kSparingDoorsBegin && door < kDoorCount;
}

constexpr uint32_t accessor_behind(uint32_t door) {
  return is_sparing_door(door)
             ? door - kSparingDoorsBegin + static_cast<uint32_t>(Accessor::TryRead)
             : door;
}

// Those with five arguments.
constexpr bool is_walk_from_caller(uint32_t door) {
  return door == static_cast<uint32_t>(Accessor::WalkStack) ||
         door == static_cast<uint32_t>(Accessor::WalkLeft);
}

constexpr bool is_of_contexts(uint32_t door) {
  return door == static_cast<uint32_t>(Accessor::ContextOpen) ||
         door == static_cast<uint32_t>(Accessor::ContextAct);
}

// What a call of this door may change: divisions and the accessors of D nothing but the result;
// the others also the scratch register r10 and the registers of their arguments, which BPF leaves
// undefined. The stub has saved them, so a thunk need not: probes take little of the program's
// stack. Sparing doors, and that of WalkWithin, change whatever C code may (System V ABI 3.2.1, and
// -fcall-used-rbx).
constexpr RegisterSet changed_by(uint32_t door) {
  RegisterSet set;
  set.add(Register::Rax);
  if (is_sparing_door(door) || door == static_cast<uint32_t>(Accessor::WalkWithin)) {
    return RegisterSet(0x1FCF);  // All but rsp, rbp and r13 to r15.
  }
  if (door < static_cast<uint32_t>(Accessor::TryRead) || door >= kAccessorCount) return set;
  set.add(Register::R10);
  set.add(Register::R11);
  const bool has_one_argument = door >= static_cast<uint32_t>(Accessor::RecordPut) &&
                                door <= static_cast<uint32_t>(Accessor::RecordTakeLeft);
  if (has_one_argument) return set;
  set.add(Register::Rbx);
  set.add(Register::R12);
  return set;
}

// What the stub must have saved, no more and no less; empty: whatever the body writes.
constexpr RegisterSet saved_for(uint32_t door) {
  return door == static_cast<uint32_t>(Accessor::WalkWithin) ? kAllSaved : RegisterSet();
}

// How much of the stack a call takes, return address and all, as runtime/check_stack reads it in
// the machine code (test runtime_stack); without the landing of exceptions. It only decides which
// doors a body takes.
inline constexpr uint32_t kStackBytesWanted = 128;
constexpr uint32_t call_stack_bytes(uint32_t door) {
  if (is_sparing_door(door)) return 16;
  if (is_walk_from_caller(door)) return 344;
  if (door == static_cast<uint32_t>(Accessor::WalkWithin)) return 296;
  if (is_of_contexts(door)) return 224;
  if (door >= static_cast<uint32_t>(Accessor::RecordPut) && door < kAccessorCount) return 80;
  return door >= static_cast<uint32_t>(Accessor::TryRead) ? 72 : 16;
}

// Holds the remaining fuel in bodies with loops. An accessor keeps it like any other register.
inline constexpr Register kFuelRegister = Register::R13;

// One accessor call is charged like this many instructions of a loop.
inline constexpr uint32_t kCallFuel = 64;

}  // namespace clew::abi
