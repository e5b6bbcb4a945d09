// SPDX-License-Identifier: Apache-2.0
// Instructions that can stay in front of a window's jump. The kernel's uprobes and debuggers put a
// trap over the first byte of a function and execute its first instruction elsewhere, as the file
// has it; then the program goes on behind that instruction. Would our jump lie there in the middle,
// it would run into the jump's displacement. So where it can, the first instruction stays, the jump
// stands behind it, and the trampoline takes back what the instruction did before it runs probes
// and the copy:
//
//     function:  push rbp               trampoline:  lea rsp, [rsp + 8]
//                jmp trampoline                      probes: the state is that of the first byte
//                …                                   push rbp …
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace clew::inline_ {

struct KeptInstruction {
  uint8_t length = 0;        // Bytes.
  uint32_t stack_bytes = 0;  // By which it moves rsp down: the trampoline moves it up.
};

// The first instruction of `bytes`, when it may stay: push, sub rsp, nop, and those that write only
// rax, r11 and flags from what they do not change, so that the copy does the same again. At the
// entry of a function none of the latter holds anything but the count of a variadic call's vector
// registers.
std::optional<KeptInstruction> kept_instruction(std::span<const uint8_t> bytes);

}  // namespace clew::inline_
