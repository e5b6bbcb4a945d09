// SPDX-License-Identifier: Apache-2.0
// One machine instruction as the rules see it. Two decoders fill this in from the same bytes: one
// on Zydis, one of our own with exactly the whitelisted encodings. Only what both read alike is
// judged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "abi/stub.h"

namespace clew::verify {

using abi::Register;

enum class Operation : uint8_t {
  Move,
  MoveZeroExtended,
  MoveSignExtended,
  Add,
  Or,
  And,
  Subtract,
  Xor,
  Compare,
  Test,
  Negate,
  Multiply,  // first *= second, or first = second * immediate
  RotateLeft,
  RotateRight,
  ShiftLeft,
  ShiftRight,
  ShiftRightSigned,
  AddressOf,  // lea
  SwapBytes,
  BitScanReverse,
  MoveFromVector,  // movq from xmm0 to xmm7: 8 bytes
  MoveIf,
  ReadTime,        // rdtsc
  ReadTimeAndCpu,  // rdtscp
  Jump,
  JumpIf,
  Call,
  ExchangeAdd,
  Exchange,
  CompareExchange,
};

struct Memory {
  bool gs = false;
  std::optional<Register> base;
  std::optional<Register> index;
  uint8_t scale = 1;  // Of the index.
  int32_t displacement = 0;
  bool operator==(const Memory&) const = default;
};

struct Operand {
  // CountRegister: cl. Vector: `in` is the number of an xmm register.
  enum class Kind : uint8_t { None, Register, Memory, CountRegister, Vector };
  Kind kind = Kind::None;
  Register in = Register::Rax;
  bool operator==(const Operand&) const = default;
};

struct Instruction {
  Operation operation = Operation::Move;
  uint8_t length_bytes = 0;
  uint8_t size_bytes = 0;         // Of the first operand; 0 for branches and rdtsc.
  uint8_t source_size_bytes = 0;  // Of the second operand of the extending moves.
  uint8_t condition = 0;          // Low four bits of jcc and cmovcc.
  bool lock = false;              // Has the prefix. Exchange with memory locks without it.
  bool has_immediate = false;
  Operand first = {};
  Operand second = {};
  Memory memory = {};      // Of the operand that is one, if any.
  uint64_t immediate = 0;  // Sign-extended, then cut to the size of the first operand.
  int64_t branch = 0;      // Distance from the end of the instruction.
  bool operator==(const Instruction&) const = default;
};

// Each decodes the instruction at the start of `bytes`; nothing when it is not whitelisted.
std::optional<Instruction> decode(std::span<const uint8_t> bytes);
std::optional<Instruction> decode_by_zydis(std::span<const uint8_t> bytes);

}  // namespace clew::verify
