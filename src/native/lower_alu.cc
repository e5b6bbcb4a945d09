// SPDX-License-Identifier: Apache-2.0
// Arithmetic. BPF and x86 agree on shift counts (modulo the width) and on zero extension of 32-bit
// results, so most operations are one instruction.
#include <bit>
#include <limits>

#include "abi/calling.h"
#include "base/assert.h"
#include "native/lowering.h"

namespace clew::native {
namespace {

using Kind = OperationKind;

Shift shift_of(isa::Alu op) {
  if (op == isa::Alu::ShiftLeft) return Shift::Left;
  return op == isa::Alu::ShiftRight ? Shift::Right : Shift::RightSigned;
}

abi::Accessor division_accessor(const Operation& op) {
  const bool divide = op.alu == isa::Alu::Divide;
  if (op.is_signed) return divide ? abi::Accessor::DivideSigned : abi::Accessor::ModuloSigned;
  return divide ? abi::Accessor::DivideUnsigned : abi::Accessor::ModuloUnsigned;
}

}  // namespace

Alu alu_of(isa::Alu op) {
  switch (op) {
    case isa::Alu::Add:
      return Alu::Add;
    case isa::Alu::Subtract:
      return Alu::Subtract;
    case isa::Alu::Or:
      return Alu::Or;
    case isa::Alu::And:
      return Alu::And;
    case isa::Alu::Xor:
      return Alu::Xor;
    case isa::Alu::Multiply:
    case isa::Alu::Divide:
    case isa::Alu::Modulo:
    case isa::Alu::ShiftLeft:
    case isa::Alu::ShiftRight:
    case isa::Alu::ShiftRightSigned:
    case isa::Alu::Negate:
    case isa::Alu::Move:
    case isa::Alu::Swap:
      break;
  }
  CLEW_ASSERT(false);
  return Alu::Add;
}

void Lowering::materialise(Register dst, const Value& value) {
  if (value.kind == Value::Kind::Live) return out_.move(dst, value.live, true);
  // The context pointer has no number; a program that could tell was refused.
  out_.move_constant(dst, value.is_constant() ? value.constant : 0);
}

Register Lowering::bring(uint32_t index, uint8_t r) {
  const Value& value = input_.facts[index].values[r];
  const Register in = assigned(r);
  if (!value.is_register()) materialise(in, value);
  return in;
}

void Lowering::move(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Register dst = assigned(op.destination);
  const Operand source = operand(index);
  if (op.kind == Kind::Move) return out_.move(dst, source.in, op.wide);
  out_.extend(dst, source.in, op.size_bytes, true, op.wide);
}

void Lowering::add_constant(uint32_t index, Register dst, int64_t value) {
  const Operation& op = input_.operations[index];
  const Value& left = input_.facts[index].values[op.destination];
  const auto small = static_cast<int32_t>(value);
  if (op.wide && left.kind == Value::Kind::Live) return out_.add_to(dst, left.live, small);
  bring(index, op.destination);
  if (small != 0 || !op.wide) out_.alu_constant(Alu::Add, dst, small, op.wide);
}

void Lowering::bit_constant(Alu op, Register dst, uint64_t value, bool wide) {
  if (op != Alu::And && wide && value == 0) return;
  const bool low_mask = op == Alu::And && value <= std::numeric_limits<uint32_t>::max();
  if (low_mask && value == 0xFF) return out_.extend(dst, dst, 1, false, false);
  if (low_mask && value == 0xFFFF) return out_.extend(dst, dst, 2, false, false);
  if (low_mask && value == 0xFFFF'FFFF) return out_.move(dst, dst, false);
  // A 32-bit `and` clears the high half too, and takes masks that do not sign-extend.
  const bool full = wide && !low_mask;
  if (fits_immediate(value, full)) {
    return out_.alu_constant(op, dst, static_cast<int32_t>(value), full);
  }
  out_.move_constant(kScratch, value);
  out_.alu(op, dst, kScratch, true);
}

void Lowering::multiply(uint32_t index, Register dst, const Operand& right) {
  const Operation& op = input_.operations[index];
  if (!right.is_constant) {
    bring(index, op.destination);
    return out_.multiply(dst, right.in, op.wide);
  }
  const uint64_t factor = op.wide ? right.constant : static_cast<uint32_t>(right.constant);
  if (std::has_single_bit(factor)) {
    bring(index, op.destination);
    return out_.shift(Shift::Left, dst, static_cast<uint8_t>(std::countr_zero(factor)), op.wide);
  }
  if (fits_immediate(right.constant, op.wide)) {
    const Operand left = operand_of(index, op.destination);
    return out_.multiply_constant(dst, left.in, static_cast<int32_t>(right.constant), op.wide);
  }
  bring(index, op.destination);
  out_.move_constant(kScratch, right.constant);
  out_.multiply(dst, kScratch, op.wide);
}

void Lowering::shift(const Operation& op, Register dst, const Operand& right) {
  if (!right.is_constant) {
    out_.move(Register::Rcx, right.in, false);
    return out_.shift_by_cl(shift_of(op.alu), dst, op.wide);
  }
  const auto count = static_cast<uint8_t>(right.constant & (op.wide ? 63 : 31));
  if (count != 0) return out_.shift(shift_of(op.alu), dst, count, op.wide);
  if (!op.wide) out_.move(dst, dst, false);
}

void Lowering::binary(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Register dst = assigned(op.destination);
  const Operand right = operand(index);
  if (op.is_division()) return divide(index);
  if (op.alu == isa::Alu::Multiply) return multiply(index, dst, right);
  if (op.is_shift()) return shift(op, bring(index, op.destination), right);
  if (!right.is_constant) {
    const Operand left = operand_of(index, op.destination);
    const bool moves = op.alu == isa::Alu::Add && op.wide && left.is_constant &&
                       fits_immediate(left.constant, true);
    if (moves) return out_.add_to(dst, right.in, static_cast<int32_t>(left.constant));
    bring(index, op.destination);
    return out_.alu(alu_of(op.alu), dst, right.in, op.wide);
  }
  const bool adds = op.alu == isa::Alu::Add || op.alu == isa::Alu::Subtract;
  const uint64_t change = op.alu == isa::Alu::Subtract ? 0 - right.constant : right.constant;
  if (adds && fits_immediate(change, op.wide)) {
    return add_constant(index, dst, static_cast<int64_t>(change));
  }
  bring(index, op.destination);
  if (!adds) return bit_constant(alu_of(op.alu), dst, right.constant, op.wide);
  out_.move_constant(kScratch, right.constant);
  out_.alu(alu_of(op.alu), dst, kScratch, op.wide);
}

void Lowering::swap(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Register dst = bring(index, op.destination);
  if (!op.reversed) {
    if (op.size_bytes == 2) out_.extend(dst, dst, 2, false, false);
    if (op.size_bytes == 4) out_.move(dst, dst, false);
    return;
  }
  out_.swap_bytes(dst, op.size_bytes == 8);
  if (op.size_bytes == 2) out_.shift(Shift::Right, dst, 16, false);
}

void Lowering::divide(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Operand right = operand(index);
  if (clew::native::divides_by_call(op, input_.facts[index])) return divide_by_call(index);
  divide_by_constant(index, op.wide ? right.constant : static_cast<uint32_t>(right.constant));
}

// Division by 0 gives 0, and the remainder is the dividend (RFC 9669, 4.1).
void Lowering::divide_by_constant(uint32_t index, uint64_t divisor) {
  const Operation& op = input_.operations[index];
  const Register dst = bring(index, op.destination);
  const bool remainder = op.alu == isa::Alu::Modulo;
  if (divisor == 0) {
    if (!remainder) return out_.move_constant(dst, 0);
    if (!op.wide) out_.move(dst, dst, false);
    return;
  }
  if (remainder) return bit_constant(Alu::And, dst, divisor - 1, op.wide);
  const auto count = static_cast<uint8_t>(std::countr_zero(divisor));
  if (count != 0) return out_.shift(Shift::Right, dst, count, op.wide);
  if (!op.wide) out_.move(dst, dst, false);
}

// The accessor divides 64-bit numbers: 32-bit operands are extended first.
void Lowering::widen(Register dst, const Operand& value, const Operation& op) {
  if (value.is_constant) {
    const auto low = static_cast<uint32_t>(value.constant);
    const auto extended =
        op.is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)}) : uint64_t{low};
    return out_.move_constant(dst, op.wide ? value.constant : extended);
  }
  if (op.wide) return out_.move(dst, value.in, true);
  if (op.is_signed) return out_.extend(dst, value.in, 4, true, true);
  out_.move(dst, value.in, false);
}

// r0, r1 and r2 keep their values in BPF, but the accessor takes and returns them: those that
// somebody still reads wait in rdx (r2), rcx (r1) and r10 (r0).
void Lowering::divide_by_call(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Register first = abi::kCallRegisters[1];
  const Register second = abi::kCallRegisters[2];
  const auto keep = [&](uint8_t r) { return r != op.destination && !is_dead_after(index, r); };
  const Operand dividend = operand_of(index, op.destination);
  const Operand divisor = operand(index);
  widen(kScratch, dividend, op);
  if (keep(2)) out_.move(kThirdScratch, second, true);
  widen(second, divisor, op);
  if (keep(1)) out_.move(kSecondScratch, first, true);
  out_.move(first, kScratch, true);
  if (keep(0)) out_.move(kScratch, Register::Rax, true);
  out_.call(static_cast<uint32_t>(division_accessor(op)));
  guarded_ = true;
  const Register dst = assigned(op.destination);
  if (dst != Register::Rax || !op.wide) out_.move(dst, Register::Rax, op.wide);
  if (keep(0)) out_.move(Register::Rax, kScratch, true);
  if (keep(1)) out_.move(first, kSecondScratch, true);
  if (keep(2)) out_.move(second, kThirdScratch, true);
}

}  // namespace clew::native
