// SPDX-License-Identifier: Apache-2.0
// Operands as Zydis reads them, and what it does not say.
#include "code/register_effect.h"

#include <optional>

#include "code/full_decode.h"

namespace clew::code {

namespace {

constexpr RegisterEffect kNotUnderstood = {
    .read = kAllRegisters, .written = {}, .changed = kAllRegisters};

// What the system, a hypervisor or an enclave sees is not among the operands.
bool hides_operands(const ZydisDecodedInstruction& instruction) {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_PADLOCK:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_UINTR:
    case ZYDIS_CATEGORY_VTX:
      return true;
    default:  // Of some 120.
      return false;
  }
}

// xor r, r and kin, or r, -1 and and r, 0: the result is the same whatever was there.
bool forgets_operands(const Full& full) {
  const ZydisDecodedOperand& to = full.all[0];
  const ZydisDecodedOperand& from = full.all[1];
  if (to.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
  const bool is_constant = from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  switch (full.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_SBB:
      return from.type == ZYDIS_OPERAND_TYPE_REGISTER && from.reg.value == to.reg.value;
    case ZYDIS_MNEMONIC_OR:
      return is_constant && from.imm.value.s == -1;
    case ZYDIS_MNEMONIC_AND:
      return is_constant && from.imm.value.s == 0;
    default:  // Of some 1,700.
      return false;
  }
}

// With a source of 0 they leave the destination as it was (Intel SDM and AMD APM, BSF and BSR); and
// to older processors the later two are just those.
bool may_leave_destination(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_BSF || mnemonic == ZYDIS_MNEMONIC_BSR ||
         mnemonic == ZYDIS_MNEMONIC_TZCNT || mnemonic == ZYDIS_MNEMONIC_LZCNT;
}

std::optional<abi::Register> general(ZydisRegister part) {
  const ZydisRegister all = whole(part);
  if (ZydisRegisterGetClass(all) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
  return static_cast<abi::Register>(ZydisRegisterGetId(all));
}

void add(abi::RegisterSet& set, ZydisRegister part) {
  if (const auto found = general(part)) set.add(*found);
}

// Writes of 32 bits clear the upper half, smaller ones leave the rest (Intel SDM, volume
// 1, 3.4.1.1).
bool writes_whole(const ZydisDecodedOperand& operand) {
  const ZydisRegisterClass size = ZydisRegisterGetClass(operand.reg.value);
  const bool is_sure =
      (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == ZYDIS_OPERAND_ACTION_WRITE;
  return is_sure && (size == ZYDIS_REGCLASS_GPR32 || size == ZYDIS_REGCLASS_GPR64);
}

void add_register(const Full& full, const ZydisDecodedOperand& operand, RegisterEffect& effect) {
  const ZydisRegister part = operand.reg.value;
  const bool is_read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  if (is_read && !forgets_operands(full)) add(effect.read, part);
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return;
  add(effect.changed, part);
  if (writes_whole(operand) && !may_leave_destination(full.instruction.mnemonic)) {
    add(effect.written, part);
  }
}

}  // namespace

RegisterEffect register_effect(std::span<const uint8_t> bytes) {
  const std::optional<Full> full = decode_full(bytes);
  if (!full || hides_operands(full->instruction)) return kNotUnderstood;
  RegisterEffect effect;
  if (full->instruction.mnemonic == ZYDIS_MNEMONIC_NOP) return effect;
  for (const ZydisDecodedOperand& operand : full->operands()) {
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      add_register(*full, operand, effect);
    } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      add(effect.read, operand.mem.base);
      add(effect.read, operand.mem.index);
    }
  }
  return effect;
}

}  // namespace clew::code
