// SPDX-License-Identifier: Apache-2.0
// The instruction set as data: the fields of an opcode byte (RFC 9669, 3 to 5) and the one table
// that the assembler, the printer and the validator share. An instruction that no row of the table
// matches does not exist.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "isa/program.h"

namespace clew::isa {

// r0: result. r1..r5: arguments, lost at a call. r6..r9: kept by calls. r10: end of the frame,
// read-only.
enum class Register : uint8_t { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 };
inline constexpr uint32_t kRegisterCount = 11;

// Low 3 bits of an opcode.
enum class Class : uint8_t { Ld, Ldx, St, Stx, Alu32, Jump64, Jump32, Alu64 };
inline constexpr uint8_t kClassMask = 0x07;

// Bit 3 of the arithmetic and jump classes: the second operand is a register, not the immediate.
inline constexpr uint8_t kSourceRegister = 0x08;

// Bits 4..7 of the arithmetic classes.
enum class Alu : uint8_t {
  Add = 0x00,
  Subtract = 0x10,
  Multiply = 0x20,
  Divide = 0x30,  // Signed when the offset field is 1.
  Or = 0x40,
  And = 0x50,
  ShiftLeft = 0x60,
  ShiftRight = 0x70,
  Negate = 0x80,
  Modulo = 0x90,  // Signed when the offset field is 1.
  Xor = 0xA0,
  Move = 0xB0,  // Sign-extending when the offset field is 8, 16 or 32.
  ShiftRightSigned = 0xC0,
  Swap = 0xD0,  // Byte order; the immediate is the width in bits.
};

// Bits 4..7 of the jump classes.
enum class Jump : uint8_t {
  Always = 0x00,  // By `offset` in class Jump64, by `immediate` in class Jump32.
  Equal = 0x10,
  Greater = 0x20,
  GreaterOrEqual = 0x30,
  BitsSet = 0x40,  // dst & src is not 0.
  NotEqual = 0x50,
  SignedGreater = 0x60,
  SignedGreaterOrEqual = 0x70,
  Call = 0x80,
  Exit = 0x90,
  Less = 0xA0,
  LessOrEqual = 0xB0,
  SignedLess = 0xC0,
  SignedLessOrEqual = 0xD0,
};
inline constexpr uint8_t kOperationMask = 0xF0;

// Bits 3..4 of the load and store classes.
enum class Size : uint8_t { Word = 0x00, Half = 0x08, Byte = 0x10, Double = 0x18 };
inline constexpr uint8_t kSizeMask = 0x18;

// Bits 5..7 of the load and store classes.
enum class Mode : uint8_t { Immediate = 0x00, Memory = 0x60, MemorySigned = 0x80, Atomic = 0xC0 };
inline constexpr uint8_t kModeMask = 0xE0;

// The immediate of an atomic instruction.
enum class Atomic : uint8_t {
  Add = 0x00,
  Or = 0x40,
  And = 0x50,
  Xor = 0xA0,
  FetchAdd = 0x01,  // The fetching forms put the old value into the source register.
  FetchOr = 0x41,
  FetchAnd = 0x51,
  FetchXor = 0xA1,
  Exchange = 0xE1,
  CompareExchange = 0xF1,  // If memory = r0, memory = source; r0 = the old value.
};

// Values of the source field of CALL.
enum class CallKind : uint8_t { Accessor = 0, Local = 1 };

enum class Width : uint8_t { Bits32, Bits64 };

// Opcodes that have one form only.
inline constexpr uint8_t kLoad64Opcode = 0x18;
inline constexpr uint8_t kJumpOpcode = 0x05;
inline constexpr uint8_t kJumpFarOpcode = 0x06;  // By the immediate.
inline constexpr uint8_t kCallOpcode = 0x85;
inline constexpr uint8_t kExitOpcode = 0x95;

constexpr Class class_of(Instruction i) {
  return static_cast<Class>(i.opcode & kClassMask);
}
constexpr Alu alu_of(Instruction i) {
  return static_cast<Alu>(i.opcode & kOperationMask);
}
constexpr Jump jump_of(Instruction i) {
  return static_cast<Jump>(i.opcode & kOperationMask);
}
constexpr Size size_of(Instruction i) {
  return static_cast<Size>(i.opcode & kSizeMask);
}
constexpr Mode mode_of(Instruction i) {
  return static_cast<Mode>(i.opcode & kModeMask);
}
constexpr bool has_register_source(Instruction i) {
  return (i.opcode & kSourceRegister) != 0;
}

// Of an atomic instruction: it writes its source register.
constexpr bool is_fetch(Instruction i) {
  return (i.immediate & 0x01) != 0 && static_cast<Atomic>(i.immediate) != Atomic::CompareExchange;
}

constexpr uint32_t size_bytes(Size size) {
  switch (size) {
    case Size::Byte:
      return 1;
    case Size::Half:
      return 2;
    case Size::Word:
      return 4;
    case Size::Double:
      return 8;
  }
  return 0;
}

constexpr Size size_of(uint32_t bytes) {
  if (bytes == 1) return Size::Byte;
  if (bytes == 2) return Size::Half;
  return bytes == 4 ? Size::Word : Size::Double;
}

// Those that compare two numbers; each has an opposite, which holds where it does not.
constexpr bool is_compare(Jump jump) {
  return jump != Jump::Always && jump != Jump::BitsSet && jump != Jump::Call && jump != Jump::Exit;
}
Jump opposite(Jump compare);

// Which fields an instruction uses. A field that is neither an operand nor the selector is 0.
//   form             operands                       selector (the field that names the operation)
enum class Form : uint8_t {
  Binary,          // dst, src or immediate          offset
  MoveSigned,      // dst, src                       offset
  Unary,           // dst                            -
  Swap,            // dst                            immediate
  Jump,            // offset                         -
  JumpFar,         // immediate                      -
  JumpIf,          // dst, src or immediate, offset  -
  CallAccessor,    // immediate                      source
  CallLocal,       // immediate                      source
  Exit,            // -                              -
  Load,            // dst, [src + offset]            -
  StoreImmediate,  // [dst + offset], immediate      -
  StoreRegister,   // [dst + offset], src            -
  Atomic,          // [dst + offset], src            immediate
  Load64,          // dst, 64-bit immediate          source
};

// Which fields of an instruction are operands or selector; the others are reserved and 0.
struct UsedFields {
  bool destination = false;
  bool source = false;
  bool offset = false;
  bool immediate = false;
};
UsedFields used_fields(Form form, const Instruction& instruction);

struct OpcodeRow {
  std::string_view mnemonic;  // As the assembler spells it; may be of several words.
  uint8_t opcode;             // With the source bit clear where the form allows both.
  Form form;
  int32_t selector;
};

// All rows. Where two rows differ by mnemonic only, the first is the one that is printed.
std::span<const OpcodeRow> opcode_table();

// The row of an instruction (of its first half for LDDW), or null when there is none.
const OpcodeRow* find_row(const Instruction& instruction);
const OpcodeRow* find_row(std::string_view mnemonic);

// Where the branch or local call at `at` leads, which may be outside the program; nothing for other
// instructions.
std::optional<int64_t> branch_target(const std::vector<Instruction>& code, size_t at);

// The names of the accessors as the assembler spells them: table_find for TableFind.
std::string_view accessor_name(abi::Accessor accessor);

// How many of r1..r5 the accessor reads.
uint32_t accessor_argument_count(abi::Accessor accessor);

}  // namespace clew::isa
