// SPDX-License-Identifier: Apache-2.0
// Instructions that can stay in front of a window's jump. The kernel's uprobes and debuggers put a
// trap over the first byte of a function and execute its first instruction elsewhere, as the file
// has it; then the program goes on behind that instruction. Would our jump lie there in the middle,
// it would run into the jump's displacement. So the first instruction stays, the jump stands behind
// it, and either
//
// - the trampoline takes back what the instruction did before it runs probes and the copy, which
//   does it again:
//
//     function:  push rbp               trampoline:  lea rsp, [rsp + 8]
//                jmp trampoline                      probes: the state is that of the first byte
//                …                                   push rbp …
//
// - or it is done once, and the window begins behind it. That is exact for probes that look at
//   nothing of what it changes:
//
//     function:  mov rdi, [rdi]         trampoline:  probes that do not ask for rdi
//                jmp trampoline                      a copy of what stood there
//                …
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "abi/stub.h"
#include "code/probe_reads.h"

namespace clew::code {

struct KeptInstruction {
  uint8_t length = 0;  // Bytes.
  // What the trampoline adds to a register, to take back what the instruction did; 0 = nothing.
  int32_t back_bytes = 0;
  abi::Register moved = abi::Register::Rsp;
};

// The first instruction of `bytes`, when it may stay and be done again: push, a constant that is
// added to or subtracted from a register, nop, and those that write only rax, r11 and flags from
// what they do not change, so that the copy does the same again. At the entry of a function none of
// the latter holds anything but the count of a variadic call's vector registers.
std::optional<KeptInstruction> kept_instruction(std::span<const uint8_t> bytes);

// lea moved, [moved + back_bytes]: 7 or 8 bytes.
struct TakeBack {
  uint8_t bytes[8] = {};
  uint8_t size_bytes = 0;
};
TakeBack take_back(const KeptInstruction& kept);

// Does the first instruction of `bytes`, which goes on to the next one, leave all alone that such a
// probe reads? rax, r11 and flags are nobody's at an entry. False for what moves rsp, and for what
// is not understood.
bool leaves_alone(std::span<const uint8_t> bytes, const ProbeReads& reads);

}  // namespace clew::code
