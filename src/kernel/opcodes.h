// SPDX-License-Identifier: Apache-2.0
// Opcodes of the kernel's BPF that code is made of here, and its registers with a use of their own.
#pragma once

#include <cstdint>

#include "isa/opcode.h"

namespace clew::kernel {

inline constexpr uint8_t kMove = 0xBF;
inline constexpr uint8_t kMove32 = 0xBC;
inline constexpr uint8_t kMoveImmediate = 0xB7;
inline constexpr uint8_t kMoveImmediate32 = 0xB4;
inline constexpr uint8_t kAddImmediate = 0x07;
inline constexpr uint8_t kLoadDouble = 0x79;
inline constexpr uint8_t kStoreDouble = 0x7B;
inline constexpr uint8_t kJumpNegative = 0xC5;  // if dst s< 0

inline constexpr uint8_t kWindowRegister = 6;
inline constexpr uint8_t kFrameRegister = 10;

inline bool branches(const isa::Instruction& i) {
  const isa::Class kind = isa::class_of(i);
  const bool is_jump = kind == isa::Class::Jump64 || kind == isa::Class::Jump32;
  return is_jump && i.opcode != isa::kCallOpcode && i.opcode != isa::kExitOpcode;
}

// Of a branch, from the instruction behind it.
inline int64_t distance(const isa::Instruction& i) {
  return i.opcode == isa::kJumpFarOpcode ? i.immediate : i.offset;
}

}  // namespace clew::kernel
