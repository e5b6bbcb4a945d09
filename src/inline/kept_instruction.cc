// SPDX-License-Identifier: Apache-2.0
#include "inline/kept_instruction.h"

#include <algorithm>
#include <array>

#include <Zydis/Zydis.h>

#include "inline/decode.h"

namespace clew::inline_ {
namespace {

constexpr size_t kStackBytesMax = 1UL << 20;

struct Full {
  ZydisDecodedInstruction instruction{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> all{};

  [[nodiscard]] std::span<const ZydisDecodedOperand> operands() const {
    return std::span(all).first(instruction.operand_count);
  }
};

std::optional<Full> decode_full(std::span<const uint8_t> bytes) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  Full full;
  const ZyanStatus status = ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(),
                                                   &full.instruction, full.all.data());
  return ZYAN_SUCCESS(status) ? std::optional(full) : std::nullopt;
}

// The flags are a part of nothing.
ZydisRegister whole(ZydisRegister part) {
  const ZydisRegister found = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);
  return found == ZYDIS_REGISTER_NONE ? part : found;
}

bool is_scratch(ZydisRegister written) {
  return written == ZYDIS_REGISTER_RAX || written == ZYDIS_REGISTER_R11 ||
         written == ZYDIS_REGISTER_RFLAGS;
}

bool reads(const ZydisDecodedOperand& operand, ZydisRegister wanted) {
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    return whole(operand.mem.base) == wanted || whole(operand.mem.index) == wanted;
  }
  const bool is_read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && is_read &&
         whole(operand.reg.value) == wanted;
}

// xor eax, eax: 0 whatever was there.
bool clears(const Full& full) {
  const auto operands = full.operands();
  return full.instruction.mnemonic == ZYDIS_MNEMONIC_XOR &&
         operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         operands[0].reg.value == operands[1].reg.value;
}

// Does it do the same when it is done again?
bool is_repeatable(const Full& full) {
  const auto operands = full.operands();
  const auto is_harmless = [&](const ZydisDecodedOperand& operand) {
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return true;
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    const ZydisRegister written = whole(operand.reg.value);
    return is_scratch(written) &&
           (clears(full) || std::none_of(operands.begin(), operands.end(),
                                         [&](const auto& other) { return reads(other, written); }));
  };
  // Calls, branches and what the system sees are not.
  const ZydisInstructionCategory category = full.instruction.meta.category;
  const bool is_plain = category == ZYDIS_CATEGORY_BINARY || category == ZYDIS_CATEGORY_DATAXFER ||
                        category == ZYDIS_CATEGORY_LOGICAL || category == ZYDIS_CATEGORY_MISC;
  const auto reads_flags = [](const ZydisDecodedOperand& operand) {
    return reads(operand, ZYDIS_REGISTER_RFLAGS);
  };
  return is_plain && std::none_of(operands.begin(), operands.end(), reads_flags) &&
         std::all_of(operands.begin(), operands.end(), is_harmless);
}

// The immediate of `sub rsp, imm`; 0 = it is something else.
uint32_t stack_taken(const Full& full) {
  const auto operands = full.operands();
  const bool takes = full.instruction.mnemonic == ZYDIS_MNEMONIC_SUB &&
                     operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                     operands[0].reg.value == ZYDIS_REGISTER_RSP &&
                     operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  const int64_t bytes = takes ? operands[1].imm.value.s : 0;
  return bytes > 0 && bytes <= static_cast<int64_t>(kStackBytesMax) ? static_cast<uint32_t>(bytes)
                                                                    : 0;
}

bool is_push_of_register(const Full& full) {
  return full.instruction.mnemonic == ZYDIS_MNEMONIC_PUSH &&
         full.operands()[0].type == ZYDIS_OPERAND_TYPE_REGISTER && full.operands()[0].size == 64 &&
         ZydisRegisterGetClass(full.operands()[0].reg.value) == ZYDIS_REGCLASS_GPR64;
}

}  // namespace

std::optional<KeptInstruction> kept_instruction(std::span<const uint8_t> bytes) {
  const auto full = decode_full(bytes.first(std::min<size_t>(bytes.size(), kInstructionSizeMax)));
  if (!full) return std::nullopt;
  KeptInstruction kept{.length = full->instruction.length};
  if (is_push_of_register(*full)) {
    kept.stack_bytes = 8;
    return kept;
  }
  kept.stack_bytes = stack_taken(*full);
  const bool is_nop = full->instruction.mnemonic == ZYDIS_MNEMONIC_NOP;
  if (kept.stack_bytes != 0 || is_nop || is_repeatable(*full)) return kept;
  return std::nullopt;
}

}  // namespace clew::inline_
