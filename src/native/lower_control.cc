// SPDX-License-Identifier: Apache-2.0
// The frame of a body, branches, calls and loops.
//
//     [mov r13d, fuel]             bodies with loops only
//     …                            operations in program order
//     [jmp end]
//     [exhausted: add qword gs:[window + missed_fuel], 1 ; jmp end]
//     [stray: add qword gs:[window + missed_unreadable], 1]
//     end:                         the stub's epilogue follows
#include <algorithm>
#include <bit>
#include <limits>

#include "abi/calling.h"
#include "abi/region.h"
#include "base/assert.h"
#include "native/lowering.h"

namespace clew::native {
namespace {

using Kind = OperationKind;

// a > b is b < a.
isa::Jump mirrored(isa::Jump jump) {
  switch (jump) {
    case isa::Jump::Greater:
      return isa::Jump::Less;
    case isa::Jump::GreaterOrEqual:
      return isa::Jump::LessOrEqual;
    case isa::Jump::Less:
      return isa::Jump::Greater;
    case isa::Jump::LessOrEqual:
      return isa::Jump::GreaterOrEqual;
    case isa::Jump::SignedGreater:
      return isa::Jump::SignedLess;
    case isa::Jump::SignedGreaterOrEqual:
      return isa::Jump::SignedLessOrEqual;
    case isa::Jump::SignedLess:
      return isa::Jump::SignedGreater;
    case isa::Jump::SignedLessOrEqual:
      return isa::Jump::SignedGreaterOrEqual;
    case isa::Jump::Equal:
    case isa::Jump::NotEqual:
    case isa::Jump::BitsSet:
    case isa::Jump::Always:
    case isa::Jump::Call:
    case isa::Jump::Exit:
      return jump;
  }
  return jump;
}

}  // namespace

Condition condition_of(isa::Jump jump) {
  switch (jump) {
    case isa::Jump::Equal:
      return Condition::Equal;
    case isa::Jump::NotEqual:
    case isa::Jump::BitsSet:
      return Condition::NotEqual;
    case isa::Jump::Greater:
      return Condition::Above;
    case isa::Jump::GreaterOrEqual:
      return Condition::AboveOrEqual;
    case isa::Jump::Less:
      return Condition::Below;
    case isa::Jump::LessOrEqual:
      return Condition::BelowOrEqual;
    case isa::Jump::SignedGreater:
      return Condition::Greater;
    case isa::Jump::SignedGreaterOrEqual:
      return Condition::GreaterOrEqual;
    case isa::Jump::SignedLess:
      return Condition::Less;
    case isa::Jump::SignedLessOrEqual:
      return Condition::LessOrEqual;
    case isa::Jump::Always:
    case isa::Jump::Call:
    case isa::Jump::Exit:
      break;
  }
  CLEW_ASSERT(false);
  return Condition::Equal;
}

bool fits_immediate(uint64_t value, bool wide) {
  if (!wide) return true;
  const auto as_signed = static_cast<int64_t>(value);
  return as_signed == static_cast<int32_t>(as_signed);
}

Lowering::Lowering(const LoweringInput& input) : input_(input), labels_(input.operations.size()) {
  out_.expect(input.expected);
  end_ = out_.label();
  exhausted_ = out_.label();
  stray_ = out_.label();
  for (size_t i = 0; i < labels_.size(); ++i) {
    if (input_.facts[i].needs_label) labels_[i] = out_.label();
  }
}

Register Lowering::assigned(uint8_t r) const {
  const std::optional<Register>& in = input_.allocation.registers[r];
  CLEW_ASSERT(in.has_value());
  return *in;
}

Label Lowering::label_of(uint32_t index) const {
  const std::optional<Label>& label = labels_[index];
  CLEW_ASSERT(label.has_value());
  return *label;
}

Operand Lowering::operand_of(uint32_t index, uint8_t r) const {
  const Value& value = input_.facts[index].values[r];
  if (value.is_constant()) return {.is_constant = true, .constant = value.constant};
  if (value.kind == Value::Kind::Live) return {.in = value.live};
  return {.in = assigned(r)};
}

Operand Lowering::operand(uint32_t index) const {
  const Operation& op = input_.operations[index];
  if (op.has_source) return operand_of(index, op.source);
  return {.is_constant = true, .constant = op.immediate};
}

void Lowering::run() {
  if (input_.allocation.has_loops) {
    constexpr uint64_t kFuelMax = std::numeric_limits<int32_t>::max();
    out_.move_constant(abi::kFuelRegister, std::min(input_.environment.fuel, kFuelMax));
  }
  const auto none = static_cast<uint32_t>(input_.operations.size());
  for (size_t i = 0; i < input_.blocks.size(); ++i) {
    const Block& block = input_.blocks[i];
    next_block_ = i + 1 < input_.blocks.size() ? input_.blocks[i + 1].first : none;
    lower_block(block);
    const uint32_t next = continuation(input_.operations, input_.facts, block);
    const bool arrives = next == none || next == next_block_ || falls_into_target(block.last);
    if (!arrives) out_.jump(label_of(next));
  }
  end();
}

// The target of a conditional branch comes next: the branch is inverted, and goes to the other
// side.
bool Lowering::falls_into_target(uint32_t index) const {
  const Operation& op = input_.operations[index];
  const Facts& facts = input_.facts[index];
  const bool conditional = op.kind == Kind::Branch && facts.needed && !facts.always_taken;
  return conditional && op.target == next_block_;
}

void Lowering::jump_if(Condition condition, uint32_t index) {
  if (!falls_into_target(index)) {
    return out_.jump_if(condition, label_of(input_.operations[index].target));
  }
  const auto inverted = static_cast<Condition>(static_cast<unsigned>(condition) ^ 1U);
  out_.jump_if(inverted, label_of(index + 1));
}

void Lowering::lower_block(const Block& block) {
  begin(block.first);
  uint32_t next_index = block.first;
  while (next_index <= block.last) {
    const uint32_t index = next_index++;
    if (!input_.facts[index].needed) continue;
    if (const auto last = fuse(index)) {
      next_index = *last + 1;
    } else {
      lower(index);
    }
  }
}

void Lowering::begin(uint32_t index) {
  if (!labels_[index]) return;
  out_.bind(label_of(index));
  if (input_.facts[index].is_loop_head) out_.loop_head(label_of(index), exhausted_);
}

void Lowering::end() {
  const bool has_loops = input_.allocation.has_loops;
  const auto count = [this](size_t counter) {
    const auto place = input_.environment.window_address + static_cast<uint32_t>(counter);
    out_.alu_memory_constant(Alu::Add, {.displacement = static_cast<int32_t>(place)}, 1, 8);
  };
  if (has_loops) {
    out_.bind(exhausted_);  // The last block has jumped to the end.
    count(input_.environment.missed_fuel_offset);
    count_spent();
    if (may_stray_) out_.jump(end_);
  }
  if (may_stray_) {
    out_.bind(stray_);
    count(offsetof(abi::RegionHeader, missed_unreadable));
  }
  out_.bind(end_);
}

// Nothing is needed any more but rsp: the scratch register is free.
void Lowering::count_spent() {
  const uint32_t address = input_.environment.spent_address;
  if (address == 0) return;
  out_.move_constant(kScratch, 1);
  out_.locked_alu(
      Alu::Add, {.space = Address::Space::Absolute, .displacement = static_cast<int32_t>(address)},
      kScratch, 4);
}

void Lowering::lower(uint32_t index) {
  const Operation& op = input_.operations[index];
  const Facts& facts = input_.facts[index];
  const auto written = result_register(op);
  if (written && !facts.result.is_register()) {
    return materialise(assigned(*written), facts.result);
  }
  switch (op.kind) {
    case Kind::Nothing:
      return;
    case Kind::Move:
    case Kind::MoveSigned:
      return move(index);
    case Kind::Binary:
      return binary(index);
    case Kind::Negate:
      return out_.negate(bring(index, op.destination), op.wide);
    case Kind::Swap:
      return swap(index);
    case Kind::Load:
      return load(index);
    case Kind::Store:
      return store(index);
    case Kind::Atomic:
      return atomic(index);
    case Kind::Branch:
      return branch(index);
    case Kind::Jump:
      return;  // run() does it, unless the target follows.
    case Kind::Call:
      return call(index);
    case Kind::Exit:
      return out_.jump(end_);
  }
}

void Lowering::compare(const Operation& op, Register left, const Operand& right) {
  const bool bits = op.jump == isa::Jump::BitsSet;
  Register other = right.in;
  if (right.is_constant) {
    const auto value = static_cast<int32_t>(right.constant);
    if (fits_immediate(right.constant, op.wide)) {
      const bool zero = value == 0 && !bits;
      if (zero) return out_.test(left, left, op.wide);
      if (bits) return out_.test_constant(left, value, op.wide);
      return out_.alu_constant(Alu::Compare, left, value, op.wide);
    }
    out_.move_constant(kScratch, right.constant);
    other = kScratch;
  }
  if (bits) return out_.test(left, other, op.wide);
  out_.alu(Alu::Compare, left, other, op.wide);
}

void Lowering::branch(uint32_t index) {
  Operation op = input_.operations[index];
  const Operand left = operand_of(index, op.destination);
  const Operand right = operand(index);
  if (input_.facts[index].always_taken) return;  // As a jump.
  if (left.is_constant) {
    op.jump = mirrored(op.jump);
    compare(op, right.in, left);
  } else {
    compare(op, left.in, right);
  }
  jump_if(condition_of(op.jump), index);
}

void Lowering::call(uint32_t index) {
  const Operation& op = input_.operations[index];
  if (is_inline(op.accessor)) return inline_call(index);
  load_arguments(index);
  out_.call(abi::door_of(static_cast<uint32_t>(op.accessor), input_.allocation.doors));
  guarded_ = true;
}

void Lowering::load_arguments(uint32_t index) {
  const uint16_t arguments = argument_registers(input_.operations[index].accessor);
  for (uint8_t r = 1; r <= 5; ++r) {
    if ((arguments >> r & 1U) != 0) static_cast<void>(bring(index, r));
  }
}

void Lowering::inline_call(uint32_t index) {
  constexpr int32_t kCpuMask = 0xFFF;  // Linux: IA32_TSC_AUX = node << 12 | cpu.
  switch (input_.operations[index].accessor) {
    case abi::Accessor::Time:
      out_.read_time();
      out_.shift(Shift::Left, Register::Rdx, 32, true);
      out_.alu(Alu::Or, Register::Rax, Register::Rdx, true);
      return;
    case abi::Accessor::Cpu:
      out_.read_time_and_cpu();
      out_.move(Register::Rax, Register::Rcx, false);
      out_.alu_constant(Alu::And, Register::Rax, kCpuMask, false);
      return;
    case abi::Accessor::BitLength:
      return bit_length(index);
    case abi::Accessor::DivideUnsigned:
    case abi::Accessor::ModuloUnsigned:
    case abi::Accessor::DivideSigned:
    case abi::Accessor::ModuloSigned:
    case abi::Accessor::TryRead:
    case abi::Accessor::TryReadString:
    case abi::Accessor::TableFind:
    case abi::Accessor::RecordPut:
    case abi::Accessor::RecordTake:
    case abi::Accessor::RecordDrop:
    case abi::Accessor::RecordTakeLeft:
    case abi::Accessor::WalkStack:
    case abi::Accessor::WalkWithin:
    case abi::Accessor::WalkLeft:
    case abi::Accessor::ContextOpen:
    case abi::Accessor::ContextAct:
      return;
  }
}

// bsr leaves its destination undefined for 0, hence the conditional move; -1 + 1 = 0 is the answer.
void Lowering::bit_length(uint32_t index) {
  const Register dst = assigned(0);
  const Operand value = operand_of(index, 1);
  if (value.is_constant) {
    out_.move_constant(dst, static_cast<uint64_t>(std::bit_width(value.constant)));
    return;
  }
  out_.move_constant(kScratch, ~uint64_t{0});
  out_.bit_scan_reverse(dst, value.in);
  out_.move_if(Condition::Equal, dst, kScratch, true);
  out_.alu_constant(Alu::Add, dst, 1, false);
}

}  // namespace clew::native
