// SPDX-License-Identifier: Apache-2.0
// The opcode table: each row written out, in the order of RFC 9669, so that it can be compared with
// the appendix of the RFC by eye.
#include "isa/opcode.h"

#include <array>

#include "base/assert.h"

namespace clew::isa {
namespace {

constexpr int32_t selector(Load64 kind) {
  return static_cast<int32_t>(kind);
}
constexpr int32_t selector(CallKind kind) {
  return static_cast<int32_t>(kind);
}
constexpr int32_t selector(Atomic op) {
  return static_cast<int32_t>(op);
}

constexpr auto kRows = std::to_array<OpcodeRow>({
    {"add", 0x07, Form::Binary, 0},
    {"add32", 0x04, Form::Binary, 0},
    {"sub", 0x17, Form::Binary, 0},
    {"sub32", 0x14, Form::Binary, 0},
    {"mul", 0x27, Form::Binary, 0},
    {"mul32", 0x24, Form::Binary, 0},
    {"div", 0x37, Form::Binary, 0},
    {"div32", 0x34, Form::Binary, 0},
    {"sdiv", 0x37, Form::Binary, 1},
    {"sdiv32", 0x34, Form::Binary, 1},
    {"or", 0x47, Form::Binary, 0},
    {"or32", 0x44, Form::Binary, 0},
    {"and", 0x57, Form::Binary, 0},
    {"and32", 0x54, Form::Binary, 0},
    {"lsh", 0x67, Form::Binary, 0},
    {"lsh32", 0x64, Form::Binary, 0},
    {"rsh", 0x77, Form::Binary, 0},
    {"rsh32", 0x74, Form::Binary, 0},
    {"neg", 0x87, Form::Unary, 0},
    {"neg32", 0x84, Form::Unary, 0},
    {"mod", 0x97, Form::Binary, 0},
    {"mod32", 0x94, Form::Binary, 0},
    {"smod", 0x97, Form::Binary, 1},
    {"smod32", 0x94, Form::Binary, 1},
    {"xor", 0xA7, Form::Binary, 0},
    {"xor32", 0xA4, Form::Binary, 0},
    {"mov", 0xB7, Form::Binary, 0},
    {"mov32", 0xB4, Form::Binary, 0},
    {"movsx864", 0xBF, Form::MoveSigned, 8},
    {"movsx1664", 0xBF, Form::MoveSigned, 16},
    {"movsx3264", 0xBF, Form::MoveSigned, 32},
    {"movsx832", 0xBC, Form::MoveSigned, 8},
    {"movsx1632", 0xBC, Form::MoveSigned, 16},
    {"arsh", 0xC7, Form::Binary, 0},
    {"arsh32", 0xC4, Form::Binary, 0},
    {"le16", 0xD4, Form::Swap, 16},
    {"le32", 0xD4, Form::Swap, 32},
    {"le64", 0xD4, Form::Swap, 64},
    {"be16", 0xDC, Form::Swap, 16},
    {"be32", 0xDC, Form::Swap, 32},
    {"be64", 0xDC, Form::Swap, 64},
    {"bswap16", 0xD7, Form::Swap, 16},
    {"bswap32", 0xD7, Form::Swap, 32},
    {"bswap64", 0xD7, Form::Swap, 64},
    {"swap16", 0xD7, Form::Swap, 16},
    {"swap32", 0xD7, Form::Swap, 32},
    {"swap64", 0xD7, Form::Swap, 64},

    {"ja", 0x05, Form::Jump, 0},
    {"ja32", 0x06, Form::JumpFar, 0},
    {"jeq", 0x15, Form::JumpIf, 0},
    {"jeq32", 0x16, Form::JumpIf, 0},
    {"jgt", 0x25, Form::JumpIf, 0},
    {"jgt32", 0x26, Form::JumpIf, 0},
    {"jge", 0x35, Form::JumpIf, 0},
    {"jge32", 0x36, Form::JumpIf, 0},
    {"jset", 0x45, Form::JumpIf, 0},
    {"jset32", 0x46, Form::JumpIf, 0},
    {"jne", 0x55, Form::JumpIf, 0},
    {"jne32", 0x56, Form::JumpIf, 0},
    {"jsgt", 0x65, Form::JumpIf, 0},
    {"jsgt32", 0x66, Form::JumpIf, 0},
    {"jsge", 0x75, Form::JumpIf, 0},
    {"jsge32", 0x76, Form::JumpIf, 0},
    {"jlt", 0xA5, Form::JumpIf, 0},
    {"jlt32", 0xA6, Form::JumpIf, 0},
    {"jle", 0xB5, Form::JumpIf, 0},
    {"jle32", 0xB6, Form::JumpIf, 0},
    {"jslt", 0xC5, Form::JumpIf, 0},
    {"jslt32", 0xC6, Form::JumpIf, 0},
    {"jsle", 0xD5, Form::JumpIf, 0},
    {"jsle32", 0xD6, Form::JumpIf, 0},
    {"call", 0x85, Form::CallAccessor, selector(CallKind::Accessor)},
    {"call local", 0x85, Form::CallLocal, selector(CallKind::Local)},
    {"exit", 0x95, Form::Exit, 0},

    {"lddw", kLoad64Opcode, Form::Load64, selector(Load64::Immediate)},
    {"lddw window", kLoad64Opcode, Form::Load64, selector(Load64::Window)},
    {"lddw site", kLoad64Opcode, Form::Load64, selector(Load64::SiteConstant)},
    {"ldxb", 0x71, Form::Load, 0},
    {"ldxh", 0x69, Form::Load, 0},
    {"ldxw", 0x61, Form::Load, 0},
    {"ldxdw", 0x79, Form::Load, 0},
    {"ldxsb", 0x91, Form::Load, 0},
    {"ldxsh", 0x89, Form::Load, 0},
    {"ldxsw", 0x81, Form::Load, 0},
    {"stb", 0x72, Form::StoreImmediate, 0},
    {"sth", 0x6A, Form::StoreImmediate, 0},
    {"stw", 0x62, Form::StoreImmediate, 0},
    {"stdw", 0x7A, Form::StoreImmediate, 0},
    {"stxb", 0x73, Form::StoreRegister, 0},
    {"stxh", 0x6B, Form::StoreRegister, 0},
    {"stxw", 0x63, Form::StoreRegister, 0},
    {"stxdw", 0x7B, Form::StoreRegister, 0},
    {"lock add", 0xDB, Form::Atomic, selector(Atomic::Add)},
    {"lock add32", 0xC3, Form::Atomic, selector(Atomic::Add)},
    {"lock or", 0xDB, Form::Atomic, selector(Atomic::Or)},
    {"lock or32", 0xC3, Form::Atomic, selector(Atomic::Or)},
    {"lock and", 0xDB, Form::Atomic, selector(Atomic::And)},
    {"lock and32", 0xC3, Form::Atomic, selector(Atomic::And)},
    {"lock xor", 0xDB, Form::Atomic, selector(Atomic::Xor)},
    {"lock xor32", 0xC3, Form::Atomic, selector(Atomic::Xor)},
    {"lock fetch add", 0xDB, Form::Atomic, selector(Atomic::FetchAdd)},
    {"lock fetch add32", 0xC3, Form::Atomic, selector(Atomic::FetchAdd)},
    {"lock fetch or", 0xDB, Form::Atomic, selector(Atomic::FetchOr)},
    {"lock fetch or32", 0xC3, Form::Atomic, selector(Atomic::FetchOr)},
    {"lock fetch and", 0xDB, Form::Atomic, selector(Atomic::FetchAnd)},
    {"lock fetch and32", 0xC3, Form::Atomic, selector(Atomic::FetchAnd)},
    {"lock fetch xor", 0xDB, Form::Atomic, selector(Atomic::FetchXor)},
    {"lock fetch xor32", 0xC3, Form::Atomic, selector(Atomic::FetchXor)},
    {"lock xchg", 0xDB, Form::Atomic, selector(Atomic::Exchange)},
    {"lock xchg32", 0xC3, Form::Atomic, selector(Atomic::Exchange)},
    {"lock cmpxchg", 0xDB, Form::Atomic, selector(Atomic::CompareExchange)},
    {"lock cmpxchg32", 0xC3, Form::Atomic, selector(Atomic::CompareExchange)},
});

constexpr auto kAccessorNames = std::to_array<std::string_view>({
    "time",
    "cpu",
    "bit_length",
    "divide_unsigned",
    "modulo_unsigned",
    "divide_signed",
    "modulo_signed",
    "try_read",
    "try_read_string",
    "table_find",
    "record_put",
    "record_take",
});
static_assert(kAccessorNames.size() == abi::kAccessorCount);

bool opcode_matches(const OpcodeRow& row, uint8_t opcode) {
  const bool either_source = row.form == Form::Binary || row.form == Form::JumpIf;
  if (either_source) return (opcode & ~kSourceRegister) == row.opcode;
  return opcode == row.opcode;
}

bool selector_matches(const OpcodeRow& row, const Instruction& instruction) {
  switch (row.form) {
    case Form::Binary:
    case Form::MoveSigned:
      return instruction.offset == row.selector;
    case Form::Swap:
    case Form::Atomic:
      return instruction.immediate == row.selector;
    case Form::CallAccessor:
    case Form::CallLocal:
    case Form::Load64:
      return instruction.source() == row.selector;
    case Form::Unary:
    case Form::Jump:
    case Form::JumpFar:
    case Form::JumpIf:
    case Form::Exit:
    case Form::Load:
    case Form::StoreImmediate:
    case Form::StoreRegister:
      return true;
  }
  return false;
}

}  // namespace

std::span<const OpcodeRow> opcode_table() {
  return kRows;
}

const OpcodeRow* find_row(const Instruction& instruction) {
  for (const OpcodeRow& row : kRows) {
    if (opcode_matches(row, instruction.opcode) && selector_matches(row, instruction)) return &row;
  }
  return nullptr;
}

const OpcodeRow* find_row(std::string_view mnemonic) {
  for (const OpcodeRow& row : kRows) {
    if (row.mnemonic == mnemonic) return &row;
  }
  return nullptr;
}

std::string_view accessor_name(abi::Accessor accessor) {
  const auto index = static_cast<uint32_t>(accessor);
  CLEW_ASSERT(index < kAccessorNames.size());
  return kAccessorNames[index];
}

}  // namespace clew::isa
