// SPDX-License-Identifier: Apache-2.0
// The opcode table: each row written out, in the order of RFC 9669, so that it can be compared with
// the appendix of the RFC by eye.
#include "isa/opcode.h"

#include <array>
#include <utility>

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
    {"lddw global", kLoad64Opcode, Form::Load64, selector(Load64::Global)},
    {"lddw context", kLoad64Opcode, Form::Load64, selector(Load64::Context)},
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

struct AccessorRow {
  std::string_view name;
  uint32_t argument_count;
};

// In the order of abi::Accessor.
constexpr auto kAccessors = std::to_array<AccessorRow>({
    {"time", 0},
    {"cpu", 0},
    {"bit_length", 1},
    {"divide_unsigned", 2},
    {"modulo_unsigned", 2},
    {"divide_signed", 2},
    {"modulo_signed", 2},
    {"try_read", 3},
    {"try_read_string", 3},
    {"table_find", 3},
    {"record_put", 1},
    {"record_take", 1},
    {"record_drop", 1},
    {"record_take_left", 1},
    {"walk_stack", 5},
    {"walk_within", 4},
    {"walk_left", 5},
    {"context_open", 0},
    {"context_act", 3},
});
static_assert(kAccessors.size() == abi::kAccessorCount);

const AccessorRow& row_of(abi::Accessor accessor) {
  const auto index = static_cast<uint32_t>(accessor);
  CLEW_ASSERT(index < kAccessors.size());
  return kAccessors[index];
}

constexpr bool opcode_matches(const OpcodeRow& row, uint8_t opcode) {
  const bool either_source = row.form == Form::Binary || row.form == Form::JumpIf;
  if (either_source) return (opcode & ~kSourceRegister) == row.opcode;
  return opcode == row.opcode;
}

// By opcode: the index of its first row. Few rows lie between those of one opcode.
constexpr auto kFirstRows = [] {
  std::array<uint8_t, 256> first{};
  for (unsigned opcode = 0; opcode < first.size(); ++opcode) {
    uint8_t at = 0;
    while (at < kRows.size() && !opcode_matches(kRows[at], static_cast<uint8_t>(opcode)))
      ++at;
    first[opcode] = at;
  }
  return first;
}();
static_assert(kRows.size() < 256);

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
  const std::span<const OpcodeRow> rows(kRows);
  for (const OpcodeRow& row : rows.subspan(kFirstRows[instruction.opcode])) {
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

UsedFields used_fields(Form form, const Instruction& instruction) {
  const bool register_source = has_register_source(instruction);
  switch (form) {
    case Form::Binary:
    case Form::JumpIf:
      return {true, register_source, true, !register_source};
    case Form::MoveSigned:
      return {.destination = true, .source = true, .offset = true};
    case Form::Unary:
      return {.destination = true};
    case Form::Swap:
      return {.destination = true, .immediate = true};
    case Form::Jump:
      return {.offset = true};
    case Form::JumpFar:
      return {.immediate = true};
    case Form::CallAccessor:
    case Form::CallLocal:
      return {.source = true, .immediate = true};
    case Form::Exit:
      return {};
    case Form::Load:
    case Form::StoreRegister:
      return {.destination = true, .source = true, .offset = true};
    case Form::StoreImmediate:
      return {.destination = true, .offset = true, .immediate = true};
    case Form::Atomic:
      return {true, true, true, true};
    case Form::Load64:
      return {.destination = true, .source = true, .immediate = true};
  }
  return {};
}

std::optional<int64_t> branch_target(const std::vector<Instruction>& code, size_t at) {
  const OpcodeRow* row = find_row(code[at]);
  if (!row) return {};
  const auto next = static_cast<int64_t>(at) + 1;
  const bool near = row->form == Form::Jump || row->form == Form::JumpIf;
  const bool far = row->form == Form::JumpFar || row->form == Form::CallLocal;
  if (near) return next + code[at].offset;
  if (far) return next + code[at].immediate;
  return {};
}

std::string_view accessor_name(abi::Accessor accessor) {
  return row_of(accessor).name;
}

uint32_t accessor_argument_count(abi::Accessor accessor) {
  return row_of(accessor).argument_count;
}

Jump opposite(Jump compare) {
  constexpr std::pair<Jump, Jump> kOpposites[] = {{Jump::Equal, Jump::NotEqual},
                                                  {Jump::Greater, Jump::LessOrEqual},
                                                  {Jump::GreaterOrEqual, Jump::Less},
                                                  {Jump::SignedGreater, Jump::SignedLessOrEqual},
                                                  {Jump::SignedGreaterOrEqual, Jump::SignedLess}};
  for (const auto& [one, other] : kOpposites) {
    if (compare == one) return other;
    if (compare == other) return one;
  }
  CLEW_ASSERT(false);
  return compare;
}

}  // namespace clew::isa
