// SPDX-License-Identifier: Apache-2.0
#include "code/kept_instruction.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <Zydis/Zydis.h>

#include "code/decode.h"
#include "code/full_decode.h"

namespace clew::code {
namespace {

constexpr int64_t kBackBytesMax = 1L << 20;

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

// The red zone of a function that has not begun: nobody's yet.
bool is_below_stack(const ZydisDecodedOperand& operand) {
  const auto& to = operand.mem;
  return to.base == ZYDIS_REGISTER_RSP && to.index == ZYDIS_REGISTER_NONE &&
         to.disp.value + operand.size / 8 <= 0;
}

// Does it do the same when it is done again?
bool is_repeatable(const Full& full) {
  const auto operands = full.operands();
  const auto is_harmless = [&](const ZydisDecodedOperand& operand) {
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return true;
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) == 0 && is_below_stack(operand);
    }
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

// What takes back `add r64, imm` or `sub r64, imm` (SDM volume 2: 81 /0 /5 and 83 /0 /5).
std::optional<KeptInstruction> added_constant(const Full& full) {
  const auto operands = full.operands();
  const bool adds = full.instruction.mnemonic == ZYDIS_MNEMONIC_ADD;
  const bool is_known = (adds || full.instruction.mnemonic == ZYDIS_MNEMONIC_SUB) &&
                        (full.instruction.opcode == 0x81 || full.instruction.opcode == 0x83) &&
                        full.instruction.length <= 7 &&
                        operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                        ZydisRegisterGetClass(operands[0].reg.value) == ZYDIS_REGCLASS_GPR64;
  if (!is_known) return std::nullopt;
  const int64_t value = operands[1].imm.value.s;
  if (value == 0 || std::abs(value) > kBackBytesMax) return std::nullopt;
  const auto number = static_cast<uint8_t>(ZydisRegisterGetId(operands[0].reg.value));
  if (operands[0].reg.value == ZYDIS_REGISTER_RAX) return std::nullopt;  // No probe asks for it.
  // A stack that grows upwards is none.
  if (operands[0].reg.value == ZYDIS_REGISTER_RSP && adds == (value > 0)) return std::nullopt;
  return KeptInstruction{.length = full.instruction.length,
                         .back_bytes = static_cast<int32_t>(adds ? -value : value),
                         .moved = static_cast<abi::Register>(number)};
}

bool is_push_of_register(const Full& full) {
  return full.instruction.mnemonic == ZYDIS_MNEMONIC_PUSH &&
         full.operands()[0].type == ZYDIS_OPERAND_TYPE_REGISTER && full.operands()[0].size == 64 &&
         ZydisRegisterGetClass(full.operands()[0].reg.value) == ZYDIS_REGCLASS_GPR64;
}

// --- what is done once

constexpr unsigned kRegisters = 16;

// Control, or what the kernel and the machine see, passes nowhere; but state may change that no
// operand names.
bool hides_effects(const ZydisDecodedInstruction& instruction) {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
    case ZYDIS_CATEGORY_RDWRFSGS:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_COND_BR:
      return true;
    default:  // Of some 120.
      return instruction.mnemonic == ZYDIS_MNEMONIC_VZEROALL ||
             instruction.mnemonic == ZYDIS_MNEMONIC_FXRSTOR ||
             instruction.mnemonic == ZYDIS_MNEMONIC_FXRSTOR64 ||
             instruction.mnemonic == ZYDIS_MNEMONIC_XBEGIN;
  }
}

// The status flags may be kept (flag_use.h); the direction is clear where probes run.
bool writes_other_flags(const ZydisDecodedInstruction& instruction) {
  constexpr ZydisAccessedFlagsMask kStatus = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF |
                                             ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF |
                                             ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;
  if (instruction.cpu_flags == nullptr) return false;
  const ZydisAccessedFlags& flags = *instruction.cpu_flags;
  return ((flags.modified | flags.set_0 | flags.set_1 | flags.undefined) & ~kStatus) != 0;
}

bool is_read(ZydisRegister written, const ProbeReads& reads) {
  const ZydisRegister all = whole(written);
  if (is_scratch(all)) return false;
  const auto number = static_cast<unsigned>(std::max<int>(ZydisRegisterGetId(all), 0));
  switch (ZydisRegisterGetClass(all)) {
    case ZYDIS_REGCLASS_GPR64:
      return all == ZYDIS_REGISTER_RSP || number >= kRegisters ||
             reads.registers.has(static_cast<abi::Register>(number));
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
      return number < kRegisters && (reads.vectors >> number & 1U) != 0;
    case ZYDIS_REGCLASS_FLAGS:
    case ZYDIS_REGCLASS_MASK:
      return false;
    default:  // Segments, x87 and what else no function is called with.
      return true;
  }
}

// Where stubs at entries push.
bool may_reach_red_zone(const ZydisDecodedOperand& operand) {
  const auto& to = operand.mem;
  return to.base == ZYDIS_REGISTER_RSP && (to.index != ZYDIS_REGISTER_NONE || to.disp.value < 0);
}

// Where no argument of this call can be: known places, of the program or of the thread.
bool is_fixed(const ZydisDecodedOperand& operand) {
  const bool has_base =
      operand.mem.base != ZYDIS_REGISTER_NONE && operand.mem.base != ZYDIS_REGISTER_RIP;
  return !has_base && operand.mem.index == ZYDIS_REGISTER_NONE;
}

bool is_read(const ZydisDecodedOperand& operand, const ProbeReads& reads) {
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return false;
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) return is_read(operand.reg.value, reads);
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return true;
  return may_reach_red_zone(operand) || reads.memory || (reads.stack && !is_fixed(operand));
}

}  // namespace

std::optional<KeptInstruction> kept_instruction(std::span<const uint8_t> bytes) {
  const auto full = decode_full(bytes.first(std::min<size_t>(bytes.size(), kInstructionSizeMax)));
  if (!full) return std::nullopt;
  KeptInstruction kept{.length = full->instruction.length};
  if (is_push_of_register(*full)) {
    kept.back_bytes = 8;
    return kept;
  }
  const bool is_nop = full->instruction.mnemonic == ZYDIS_MNEMONIC_NOP;
  if (is_nop || is_repeatable(*full)) return kept;
  return added_constant(*full);
}

// SDM volume 2: 8D /r with a 4-byte displacement; rsp and r12 as a base take a SIB.
TakeBack take_back(const KeptInstruction& kept) {
  TakeBack lea;
  if (kept.back_bytes == 0) return lea;
  const auto number = static_cast<unsigned>(kept.moved);
  const unsigned low = number & 7U;
  const auto put = [&](unsigned byte) { lea.bytes[lea.size_bytes++] = static_cast<uint8_t>(byte); };
  put(number >= 8 ? 0x4dU : 0x48U);
  put(0x8d);
  put(0x80 | low << 3 | low);
  if (low == 4) put(0x24);
  for (unsigned shift = 0; shift < 32; shift += 8)
    put(static_cast<uint32_t>(kept.back_bytes) >> shift & 0xffU);
  return lea;
}

bool leaves_alone(std::span<const uint8_t> bytes, const ProbeReads& reads) {
  const auto full = decode_full(bytes.first(std::min<size_t>(bytes.size(), kInstructionSizeMax)));
  const bool is_known =
      full && !hides_effects(full->instruction) && !writes_other_flags(full->instruction);
  if (!is_known) return false;
  const auto operands = full->operands();
  return std::none_of(operands.begin(), operands.end(),
                      [&](const auto& operand) { return is_read(operand, reads); });
}

}  // namespace clew::code
