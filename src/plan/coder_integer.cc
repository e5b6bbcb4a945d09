// SPDX-License-Identifier: Apache-2.0
// The integer half of Coder: r0 = the value of an expression, with 64 bits that are right for its
// type ("canonical").
#include <cstddef>

#include "abi/context.h"
#include "abi/query_window.h"
#include "aggregate/hash.h"
#include "plan/coder.h"
#include "plan/coder_parts.h"
#include "plan/operation.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;
using isa::Width;
using query::Expression;
using query::ExpressionKind;
using query::Field;

namespace {

// Whether the right operand can stand in the instruction.
bool has_immediate(const Expression& binary) {
  const Expression& right = binary.operands[1];
  if (right.kind != ExpressionKind::Integer || !fits_immediate(right.integer)) return false;
  return !query::divides(binary.binary) || right.integer > 0;
}

// Whether canonical operands give a canonical result without more ado.
bool stays_canonical(const Expression& binary) {
  using query::BinaryOperator;
  const BinaryOperator op = binary.binary;
  // INT_MIN / -1 leaves the range.
  if (op == BinaryOperator::Divide) return !binary.type.is_signed;
  return op == BinaryOperator::Modulo || op == BinaryOperator::ShiftRight ||
         op == BinaryOperator::And || op == BinaryOperator::Xor || op == BinaryOperator::Or;
}

// Whether each value of `from` has the same 64 bits as a value of `to`.
bool widens(const query::Type& from, const query::Type& to) {
  if (from.kind != query::TypeKind::Integer || to.kind != query::TypeKind::Integer) return false;
  if (from.size_bytes == to.size_bytes) return from.is_signed == to.is_signed;
  return from.size_bytes < to.size_bytes && (!from.is_signed || to.is_signed);
}

}  // namespace

Expected<void> Coder::need_lets(const Expression& expression) {
  for (const Expression& operand : expression.operands) {
    CLEW_TRY(need_lets(operand));
  }
  if (expression.kind == ExpressionKind::Input) {
    return need_lets(source_->inputs[expression.index]);
  }
  if (expression.kind != ExpressionKind::Let || lets_.contains(expression.index)) return {};
  const Expression& meaning = query_.lets[expression.index].expression;
  CLEW_TRY(need_lets(meaning));
  const int32_t area = CLEW_TRY(reserve(8 * stored_words(meaning)));
  if (is_text(meaning.type)) {
    CLEW_TRY(store_text(meaning, Register::R10, area));
  } else {
    CLEW_TRY(integer(meaning));
    builder_.store(Size::Double, Register::R10, area, Register::R0);
  }
  lets_.emplace(expression.index, area);
  return {};
}

Expected<void> Coder::require(const Expression& expression) {
  CLEW_TRY(need_lets(expression));
  return branch(expression, false, exit_);
}

Expected<void> Coder::value(const Expression& expression) {
  CLEW_TRY(need_lets(expression));
  return integer(expression);
}

Expected<void> Coder::integer(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::Integer:
      builder_.load_constant(Register::R0, static_cast<uint64_t>(expression.integer));
      return {};
    case ExpressionKind::Field:
      return field(expression);
    case ExpressionKind::Input:
      return integer(source_->inputs[expression.index]);
    case ExpressionKind::Let:
      builder_.load(Size::Double, Register::R0, Register::R10, lets_.at(expression.index));
      return {};
    case ExpressionKind::JoinColumn:
      (void)leaf(expression, Register::R0);
      return {};
    case ExpressionKind::Unary:
      return unary(expression);
    case ExpressionKind::Binary:
      return binary(expression);
    case ExpressionKind::Conditional:
      return conditional(expression);
    case ExpressionKind::Convert:
      CLEW_TRY(integer(expression.operands[0]));
      if (!widens(expression.operands[0].type, expression.type)) canonical(expression.type);
      return {};
    case ExpressionKind::Load:
      return load(expression);
    case ExpressionKind::Call:
      return call(expression);
    case ExpressionKind::In:
      return truth(expression);
    case ExpressionKind::Float:
    case ExpressionKind::String:
    case ExpressionKind::Value:
    case ExpressionKind::Aggregate:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
      break;
  }
  return fail(ErrorCode::InvalidQuery, "an expression is not an integer at the probe");
}

void Coder::canonical(const query::Type& type) {
  if (type.kind != query::TypeKind::Integer) return;
  builder_.extend(Register::R0, type.size_bytes, type.is_signed);
}

bool Coder::leaf(const Expression& expression, Register into) {
  if (expression.kind == ExpressionKind::Integer) {
    builder_.load_constant(into, static_cast<uint64_t>(expression.integer));
    return true;
  }
  if (expression.kind == ExpressionKind::Let) {
    builder_.load(Size::Double, into, Register::R10, lets_.at(expression.index));
    return true;
  }
  if (expression.kind == ExpressionKind::JoinColumn) {
    builder_.load_window(into, environment_.packed_at(expression))
        .load(Size::Double, into, into, 0);
    return true;
  }
  if (expression.kind != ExpressionKind::Field) return false;
  const auto context = [&](size_t offset) {
    builder_.load(Size::Double, into, kContext, static_cast<int32_t>(offset));
    return true;
  };
  switch (expression.field) {
    case Field::Argument:
      if (expression.index == static_cast<uint16_t>(abi::QueryWord::NodeName)) {
        builder_.load_constant(into, abi::kMachineWindowTag | abi::kQueryNodeNameOffset);
        return true;
      }
      if (expression.index == static_cast<uint16_t>(abi::QueryWord::Uid)) {
        load_owner(abi::QueryWord::Uid, into);
        return true;
      }
      if (is_above_frame(expression.index)) return false;
      return context(static_cast<size_t>(argument_offset(expression.index)));
    case Field::ReturnValue:
      return context(expression.type.kind == query::TypeKind::Float
                         ? offsetof(abi::Context, vectors)
                         : offsetof(abi::Context, return_value));
    case Field::Caller:
      if (!landing_) return context(offsetof(abi::Context, caller));
      builder_.load(Size::Double, into, kRecord, environment_.caller_at());
      return true;
    case Field::Tid:
      return context(offsetof(abi::Context, tid));
    case Field::Elapsed:
      builder_.move(into, kElapsed);
      return true;
    case Field::EntryArgument: {
      builder_.load(Size::Double, into, kRecord, environment_.argument_at(expression.index));
      return true;
    }
    case Field::Time:
    case Field::Pid:
    case Field::Cpu:
    case Field::Comm:
    case Field::ProcName:
    case Field::Host:
    case Field::NodeName:
    case Field::Container:
    case Field::Unit:
    case Field::ControlGroup:
    case Field::User:
    case Field::Uid:
    case Field::Function:
    case Field::Module:
    case Field::Probe:
    case Field::Stack:
    case Field::UserStack:
    case Field::KernelStack:
      return false;
  }
  return {};
}

// What a program of the kernel has noted of the thread.
void Coder::load_owner(abi::QueryWord word, Register into) {
  const bool is_uid = word == abi::QueryWord::Uid;
  const uint32_t offset = is_uid ? abi::kQueryUidOffset : abi::kQueryControlGroupOffset;
  builder_.load_window(into, abi::kQueryMachine + offset).load(Size::Double, into, into, 0);
}

Expected<void> Coder::field(const Expression& expression) {
  if (leaf(expression, Register::R0)) {
    // Thread ids are the kernel's; everything else has 8 bytes.
    return {};
  }
  if (expression.field == Field::Argument) {
    const int32_t mark = frame_used_;
    const int32_t area = CLEW_TRY(reserve(8));
    load_above_frame(expression.index, {.offset = area}, unreadable());
    release(mark);
    return {};
  }
  if (expression.field == Field::Time) {
    monotonic_time();
    return {};
  }
  if (expression.field == Field::Cpu) {
    builder_.call(abi::Accessor::Cpu);
    return {};
  }
  return fail(ErrorCode::InvalidQuery, "an event field is not available at the probe");
}

Expected<void> Coder::operands(const Expression& left, const Expression& right) {
  const bool simple = right.kind == ExpressionKind::Integer || right.kind == ExpressionKind::Let ||
                      right.kind == ExpressionKind::JoinColumn ||
                      right.kind == ExpressionKind::Field;
  CLEW_TRY(integer(left));
  if (simple && leaf(right, Register::R2)) return {};
  const int32_t mark = frame_used_;
  const int32_t area = CLEW_TRY(reserve(8));
  builder_.store(Size::Double, Register::R10, area, Register::R0);
  CLEW_TRY(integer(right));
  builder_.move(Register::R2, Register::R0).load(Size::Double, Register::R0, Register::R10, area);
  release(mark);
  return {};
}

Expected<void> Coder::unary(const Expression& expression) {
  if (expression.unary == query::UnaryOperator::Not) return truth(expression);
  CLEW_TRY(integer(expression.operands[0]));
  if (expression.unary == query::UnaryOperator::Negate) {
    builder_.negate(Register::R0);
  } else {
    builder_.alu(Alu::Xor, Register::R0, -1);
  }
  canonical(expression.type);
  return {};
}

template <typename Operand>
void Coder::put(const Expression& binary, Alu alu, Operand right) {
  if (query::divides(binary.binary) && binary.type.is_signed) {
    builder_.alu_signed(alu, Register::R0, right);
  } else {
    builder_.alu(alu, Register::R0, right);
  }
}

Expected<void> Coder::binary(const Expression& expression) {
  const query::BinaryOperator op = expression.binary;
  if (query::is_comparison(op) || query::is_logical(op)) return truth(expression);
  const Alu alu = alu_of(op, expression.type.is_signed);
  const int32_t count_mask = 8 * expression.type.size_bytes - 1;
  if (has_immediate(expression)) {
    CLEW_TRY(integer(expression.operands[0]));
    const auto number = static_cast<int32_t>(expression.operands[1].integer);
    put(expression, alu, query::is_shift(op) ? number & count_mask : number);
  } else {
    CLEW_TRY(operands(expression.operands[0], expression.operands[1]));
    if (query::is_shift(op)) builder_.alu(Alu::And, Register::R2, count_mask);
    put(expression, alu, Register::R2);
  }
  if (!stays_canonical(expression)) canonical(expression.type);
  return {};
}

// r0 = 1 for every `one_in`th evaluation on this thread, else 0.
void Coder::sample(int64_t one_in) {
  const Label no = builder_.label();
  builder_.load_window(Register::R3, environment_.samples_offset + 8 * samples_++)
      .load(Size::Double, Register::R2, Register::R3, 0)
      .alu(Alu::Add, Register::R2, 1)
      .move(Register::R0, 0)
      .load_constant(Register::R4, static_cast<uint64_t>(one_in))
      .jump_if(Jump::Less, Register::R2, Register::R4, no)
      .move(Register::R2, 0)
      .move(Register::R0, 1)
      .bind(no)
      .store(Size::Double, Register::R3, 0, Register::R2);
}

Expected<void> Coder::call(const Expression& expression) {
  using query::Function;
  switch (expression.function) {
    case Function::Log2: {
      const Label zero = builder_.label();
      CLEW_TRY(integer(expression.operands[0]));
      builder_.move(Register::R1, Register::R0)
          .call(abi::Accessor::BitLength)
          .jump_if(Jump::Equal, Register::R0, 0, zero)
          .alu(Alu::Add, Register::R0, -1)
          .bind(zero);
      return {};
    }
    case Function::Min:
    case Function::Max:
      return choose_extreme(expression);
    case Function::Abs: {
      const Label positive = builder_.label();
      CLEW_TRY(integer(expression.operands[0]));
      if (!expression.type.is_signed) return {};
      builder_.jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, positive)
          .negate(Register::R0)
          .bind(positive);
      canonical(expression.type);
      return {};
    }
    case Function::Hash:
      return hash_of(expression.operands[0]);
    case Function::Sample:
      sample(expression.operands[0].integer);
      return {};
    case Function::StartsWith:
      return truth(expression);
    case Function::Extension:
      return extension_call(expression);
    case Function::Len:
      return fail(ErrorCode::InvalidQuery, "len is not available at the probe");
    case Function::Substr:
    case Function::Before:
    case Function::Contains:
    case Function::Like:
    case Function::Hex:
    case Function::Cut:
    case Function::WideText:
    case Function::Address:
    case Function::SocketAddress:
    case Function::Print:
    case Function::IsNothing:
      break;
  }
  return fail(ErrorCode::InvalidQuery, "a function is not available at the probe");
}

// r0 = aggregate::hash_step(r0, r2).
void Coder::hash_step() {
  const auto fold = [this](uint64_t multiplier) {
    builder_.load_constant(Register::R3, multiplier)
        .alu(Alu::Multiply, Register::R0, Register::R3)
        .move(Register::R3, Register::R0)
        .alu(Alu::ShiftRight, Register::R3, 32)
        .alu(Alu::Xor, Register::R0, Register::R3);
  };
  builder_.alu(Alu::Xor, Register::R0, Register::R2);
  fold(aggregate::kHashMultiply1);
  fold(aggregate::kHashMultiply2);
}

Expected<void> Coder::hash_of(const Expression& expression) {
  CLEW_TRY(need_lets(expression));
  if (!is_text(expression.type)) {
    CLEW_TRY(integer(expression));
    builder_.move(Register::R2, Register::R0).load_constant(Register::R0, aggregate::kHashSeed);
    hash_step();
    return {};
  }
  const int32_t mark = frame_used_;
  const int32_t area = CLEW_TRY(text_in_frame(expression));
  builder_.load_constant(Register::R0, aggregate::kHashSeed);
  for (uint32_t word = 0; word < stored_words(expression); ++word) {
    builder_.load(Size::Double, Register::R2, Register::R10, area + static_cast<int32_t>(8 * word));
    hash_step();
  }
  release(mark);
  return {};
}

}  // namespace clew::plan
