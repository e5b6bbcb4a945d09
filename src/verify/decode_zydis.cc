// SPDX-License-Identifier: Apache-2.0
// The first decoder: Zydis 4.0, its answer reduced to the whitelisted operations. It judges by
// mnemonic and operands; which encodings are allowed is the business of our own decoder.
#include <array>

#include <Zydis/Zydis.h>

#include "verify/instruction.h"

namespace clew::verify {
namespace {

struct Named {
  ZydisMnemonic mnemonic;
  Operation operation;
  uint8_t condition = 0;
};

constexpr auto kNames = std::to_array<Named>({
    {ZYDIS_MNEMONIC_MOV, Operation::Move},
    {ZYDIS_MNEMONIC_MOVZX, Operation::MoveZeroExtended},
    {ZYDIS_MNEMONIC_MOVSX, Operation::MoveSignExtended},
    {ZYDIS_MNEMONIC_MOVSXD, Operation::MoveSignExtended},
    {ZYDIS_MNEMONIC_ADD, Operation::Add},
    {ZYDIS_MNEMONIC_OR, Operation::Or},
    {ZYDIS_MNEMONIC_AND, Operation::And},
    {ZYDIS_MNEMONIC_SUB, Operation::Subtract},
    {ZYDIS_MNEMONIC_XOR, Operation::Xor},
    {ZYDIS_MNEMONIC_CMP, Operation::Compare},
    {ZYDIS_MNEMONIC_TEST, Operation::Test},
    {ZYDIS_MNEMONIC_NEG, Operation::Negate},
    {ZYDIS_MNEMONIC_IMUL, Operation::Multiply},
    {ZYDIS_MNEMONIC_ROL, Operation::RotateLeft},
    {ZYDIS_MNEMONIC_ROR, Operation::RotateRight},
    {ZYDIS_MNEMONIC_SHL, Operation::ShiftLeft},
    {ZYDIS_MNEMONIC_SHR, Operation::ShiftRight},
    {ZYDIS_MNEMONIC_SAR, Operation::ShiftRightSigned},
    {ZYDIS_MNEMONIC_LEA, Operation::AddressOf},
    {ZYDIS_MNEMONIC_BSWAP, Operation::SwapBytes},
    {ZYDIS_MNEMONIC_BSR, Operation::BitScanReverse},
    {ZYDIS_MNEMONIC_MOVQ, Operation::MoveFromVector},
    {ZYDIS_MNEMONIC_RDTSC, Operation::ReadTime},
    {ZYDIS_MNEMONIC_RDTSCP, Operation::ReadTimeAndCpu},
    {ZYDIS_MNEMONIC_XADD, Operation::ExchangeAdd},
    {ZYDIS_MNEMONIC_XCHG, Operation::Exchange},
    {ZYDIS_MNEMONIC_CMPXCHG, Operation::CompareExchange},
    {ZYDIS_MNEMONIC_JMP, Operation::Jump},
    {ZYDIS_MNEMONIC_CALL, Operation::Call},
    {ZYDIS_MNEMONIC_JO, Operation::JumpIf, 0},
    {ZYDIS_MNEMONIC_JNO, Operation::JumpIf, 1},
    {ZYDIS_MNEMONIC_JB, Operation::JumpIf, 2},
    {ZYDIS_MNEMONIC_JNB, Operation::JumpIf, 3},
    {ZYDIS_MNEMONIC_JZ, Operation::JumpIf, 4},
    {ZYDIS_MNEMONIC_JNZ, Operation::JumpIf, 5},
    {ZYDIS_MNEMONIC_JBE, Operation::JumpIf, 6},
    {ZYDIS_MNEMONIC_JNBE, Operation::JumpIf, 7},
    {ZYDIS_MNEMONIC_JS, Operation::JumpIf, 8},
    {ZYDIS_MNEMONIC_JNS, Operation::JumpIf, 9},
    {ZYDIS_MNEMONIC_JP, Operation::JumpIf, 10},
    {ZYDIS_MNEMONIC_JNP, Operation::JumpIf, 11},
    {ZYDIS_MNEMONIC_JL, Operation::JumpIf, 12},
    {ZYDIS_MNEMONIC_JNL, Operation::JumpIf, 13},
    {ZYDIS_MNEMONIC_JLE, Operation::JumpIf, 14},
    {ZYDIS_MNEMONIC_JNLE, Operation::JumpIf, 15},
    {ZYDIS_MNEMONIC_CMOVO, Operation::MoveIf, 0},
    {ZYDIS_MNEMONIC_CMOVNO, Operation::MoveIf, 1},
    {ZYDIS_MNEMONIC_CMOVB, Operation::MoveIf, 2},
    {ZYDIS_MNEMONIC_CMOVNB, Operation::MoveIf, 3},
    {ZYDIS_MNEMONIC_CMOVZ, Operation::MoveIf, 4},
    {ZYDIS_MNEMONIC_CMOVNZ, Operation::MoveIf, 5},
    {ZYDIS_MNEMONIC_CMOVBE, Operation::MoveIf, 6},
    {ZYDIS_MNEMONIC_CMOVNBE, Operation::MoveIf, 7},
    {ZYDIS_MNEMONIC_CMOVS, Operation::MoveIf, 8},
    {ZYDIS_MNEMONIC_CMOVNS, Operation::MoveIf, 9},
    {ZYDIS_MNEMONIC_CMOVP, Operation::MoveIf, 10},
    {ZYDIS_MNEMONIC_CMOVNP, Operation::MoveIf, 11},
    {ZYDIS_MNEMONIC_CMOVL, Operation::MoveIf, 12},
    {ZYDIS_MNEMONIC_CMOVNL, Operation::MoveIf, 13},
    {ZYDIS_MNEMONIC_CMOVLE, Operation::MoveIf, 14},
    {ZYDIS_MNEMONIC_CMOVNLE, Operation::MoveIf, 15},
});

const Named* find_name(ZydisMnemonic mnemonic) {
  for (const Named& named : kNames) {
    if (named.mnemonic == mnemonic) return &named;
  }
  return nullptr;
}

std::optional<Register> general_register(ZydisRegister r) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
  return static_cast<Register>(ZydisRegisterGetId(whole));
}

bool read_memory(const ZydisDecodedOperandMem& from, Memory& to) {
  if (from.base != ZYDIS_REGISTER_NONE) {
    to.base = general_register(from.base);
    if (!to.base) return false;
  }
  if (from.index != ZYDIS_REGISTER_NONE) {
    to.index = general_register(from.index);
    if (!to.index) return false;
    to.scale = from.scale;
  }
  const bool fs = from.segment == ZYDIS_REGISTER_FS;
  to.gs = from.segment == ZYDIS_REGISTER_GS;
  to.displacement = static_cast<int32_t>(from.disp.value);
  return !fs && to.displacement == from.disp.value;
}

uint64_t cut_if_known(uint64_t value, uint32_t size) {
  return size >= 8 || size == 0 ? value : value & ((uint64_t{1} << (8 * size)) - 1);
}

// Fills operand number `index` of `out`. Immediates and branch distances go to their own fields.
bool read_operand(const ZydisDecodedOperand& from, uint32_t index, Instruction& out) {
  Operand& operand = index == 0 ? out.first : out.second;
  switch (from.type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: {
      const bool vector = ZydisRegisterGetClass(from.reg.value) == ZYDIS_REGCLASS_XMM;
      if (vector) {
        operand = {.kind = Operand::Kind::Vector,
                   .in = static_cast<Register>(ZydisRegisterGetId(from.reg.value))};
        return index == 1;
      }
      const auto r = general_register(from.reg.value);
      if (!r || index > 1) return false;
      const bool count = index == 1 && from.reg.value == ZYDIS_REGISTER_CL &&
                         out.operation >= Operation::RotateLeft &&
                         out.operation <= Operation::ShiftRightSigned;
      operand = {.kind = Operand::Kind::Register, .in = *r};
      if (count) operand = {.kind = Operand::Kind::CountRegister};
      return true;
    }
    case ZYDIS_OPERAND_TYPE_MEMORY:
      if (index > 1) return false;
      operand = {.kind = Operand::Kind::Memory};
      return read_memory(from.mem, out.memory);
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
      if (from.imm.is_relative != ZYAN_FALSE) {
        out.branch = from.imm.value.s;
        return true;
      }
      out.has_immediate = true;
      out.immediate = cut_if_known(from.imm.value.u, out.size_bytes);
      return true;
    case ZYDIS_OPERAND_TYPE_UNUSED:
    case ZYDIS_OPERAND_TYPE_POINTER:
      return false;
  }
  return false;
}

bool is_branch(Operation operation) {
  return operation == Operation::Jump || operation == Operation::JumpIf ||
         operation == Operation::Call;
}

}  // namespace

std::optional<Instruction> decode_by_zydis(std::span<const uint8_t> bytes) {
  ZydisDecoder decoder;
  ZydisDecodedInstruction read;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  const ZyanStatus status =
      ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &read, operands.data());
  if (!ZYAN_SUCCESS(status)) return std::nullopt;
  const Named* named = find_name(read.mnemonic);
  if (named == nullptr) return std::nullopt;
  Instruction out;
  out.operation = named->operation;
  out.condition = named->condition;
  out.length_bytes = read.length;
  out.lock = (read.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0;
  const bool sized = !is_branch(out.operation) && read.operand_count_visible > 0;
  if (sized) out.size_bytes = static_cast<uint8_t>(operands[0].size / 8);
  const bool extends =
      out.operation == Operation::MoveZeroExtended || out.operation == Operation::MoveSignExtended;
  if (extends) out.source_size_bytes = static_cast<uint8_t>(operands[1].size / 8);
  for (uint32_t i = 0; i < read.operand_count_visible; ++i) {
    if (!read_operand(operands[i], i, out)) return std::nullopt;
  }
  const bool indirect = is_branch(out.operation) && out.first.kind != Operand::Kind::None;
  if (indirect) return std::nullopt;
  return out;
}

}  // namespace clew::verify
