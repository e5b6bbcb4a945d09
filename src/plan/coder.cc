// SPDX-License-Identifier: Apache-2.0
// The frame of a program: begin and end, records of open calls, time, integers and branches. Text
// and memory are in coder_text.cc.
#include "plan/coder.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "abi/context.h"
#include "aggregate/buckets.h"
#include "isa/validator.h"

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

constexpr Register kContext = Register::R6;
constexpr Register kRecord = Register::R7;
constexpr Register kElapsed = Register::R8;
constexpr uint32_t kFrameStep = 16;  // Frames are this far apart (abi/region.h, records).

bool fits_immediate(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

int32_t argument_offset(uint16_t index) {
  if (index < 6) return static_cast<int32_t>(offsetof(abi::Context, arguments) + 8U * index);
  return static_cast<int32_t>(offsetof(abi::Context, stack_arguments) + 8U * (index - 6U));
}

Jump inverse(Jump jump) {
  switch (jump) {
    case Jump::Equal:
      return Jump::NotEqual;
    case Jump::NotEqual:
      return Jump::Equal;
    case Jump::Greater:
      return Jump::LessOrEqual;
    case Jump::GreaterOrEqual:
      return Jump::Less;
    case Jump::Less:
      return Jump::GreaterOrEqual;
    case Jump::LessOrEqual:
      return Jump::Greater;
    case Jump::SignedGreater:
      return Jump::SignedLessOrEqual;
    case Jump::SignedGreaterOrEqual:
      return Jump::SignedLess;
    case Jump::SignedLess:
      return Jump::SignedGreaterOrEqual;
    case Jump::SignedLessOrEqual:
      return Jump::SignedGreater;
    case Jump::Always:
    case Jump::BitsSet:
    case Jump::Call:
    case Jump::Exit:
      break;
  }
  return jump;
}

Jump comparison(query::BinaryOperator op, bool is_signed) {
  switch (op) {
    case query::BinaryOperator::Less:
      return is_signed ? Jump::SignedLess : Jump::Less;
    case query::BinaryOperator::LessEqual:
      return is_signed ? Jump::SignedLessOrEqual : Jump::LessOrEqual;
    case query::BinaryOperator::Greater:
      return is_signed ? Jump::SignedGreater : Jump::Greater;
    case query::BinaryOperator::GreaterEqual:
      return is_signed ? Jump::SignedGreaterOrEqual : Jump::GreaterOrEqual;
    case query::BinaryOperator::Equal:
      return Jump::Equal;
    case query::BinaryOperator::NotEqual:
      return Jump::NotEqual;
    case query::BinaryOperator::Multiply:
    case query::BinaryOperator::Divide:
    case query::BinaryOperator::Modulo:
    case query::BinaryOperator::Add:
    case query::BinaryOperator::Subtract:
    case query::BinaryOperator::ShiftLeft:
    case query::BinaryOperator::ShiftRight:
    case query::BinaryOperator::And:
    case query::BinaryOperator::Xor:
    case query::BinaryOperator::Or:
    case query::BinaryOperator::LogicalAnd:
    case query::BinaryOperator::LogicalOr:
      return Jump::Always;
  }
  return {};
}

bool is_comparison(query::BinaryOperator op) {
  return comparison(op, false) != Jump::Always;
}

Alu alu_of(query::BinaryOperator op, bool is_signed) {
  switch (op) {
    case query::BinaryOperator::Multiply:
      return Alu::Multiply;
    case query::BinaryOperator::Divide:
      return Alu::Divide;
    case query::BinaryOperator::Modulo:
      return Alu::Modulo;
    case query::BinaryOperator::Add:
      return Alu::Add;
    case query::BinaryOperator::Subtract:
      return Alu::Subtract;
    case query::BinaryOperator::ShiftLeft:
      return Alu::ShiftLeft;
    case query::BinaryOperator::ShiftRight:
      return is_signed ? Alu::ShiftRightSigned : Alu::ShiftRight;
    case query::BinaryOperator::And:
      return Alu::And;
    case query::BinaryOperator::Xor:
      return Alu::Xor;
    case query::BinaryOperator::Or:
      return Alu::Or;
    case query::BinaryOperator::Less:
    case query::BinaryOperator::LessEqual:
    case query::BinaryOperator::Greater:
    case query::BinaryOperator::GreaterEqual:
    case query::BinaryOperator::Equal:
    case query::BinaryOperator::NotEqual:
    case query::BinaryOperator::LogicalAnd:
    case query::BinaryOperator::LogicalOr:
      break;
  }
  return Alu::Move;
}

bool divides(query::BinaryOperator op) {
  return op == query::BinaryOperator::Divide || op == query::BinaryOperator::Modulo;
}

bool shifts(query::BinaryOperator op) {
  return op == query::BinaryOperator::ShiftLeft || op == query::BinaryOperator::ShiftRight;
}

// Whether the right operand can stand in the instruction.
bool has_immediate(const Expression& binary) {
  const Expression& right = binary.operands[1];
  if (right.kind != ExpressionKind::Integer || !fits_immediate(right.integer)) return false;
  return !divides(binary.binary) || right.integer > 0;
}

// Whether canonical operands give a canonical result without more ado.
bool stays_canonical(const Expression& binary) {
  switch (binary.binary) {
    case query::BinaryOperator::And:
    case query::BinaryOperator::Or:
    case query::BinaryOperator::Xor:
    case query::BinaryOperator::ShiftRight:
    case query::BinaryOperator::Modulo:
      return true;
    case query::BinaryOperator::Divide:  // INT_MIN / -1 leaves the range.
      return !binary.type.is_signed;
    case query::BinaryOperator::Multiply:
    case query::BinaryOperator::Add:
    case query::BinaryOperator::Subtract:
    case query::BinaryOperator::ShiftLeft:
    case query::BinaryOperator::Less:
    case query::BinaryOperator::LessEqual:
    case query::BinaryOperator::Greater:
    case query::BinaryOperator::GreaterEqual:
    case query::BinaryOperator::Equal:
    case query::BinaryOperator::NotEqual:
    case query::BinaryOperator::LogicalAnd:
    case query::BinaryOperator::LogicalOr:
      break;
  }
  return false;
}

// Whether each value of `from` has the same 64 bits as a value of `to`.
bool widens(const query::Type& from, const query::Type& to) {
  if (from.kind != query::TypeKind::Integer || to.kind != query::TypeKind::Integer) return false;
  if (from.size_bytes == to.size_bytes) return from.is_signed == to.is_signed;
  return from.size_bytes < to.size_bytes && (!from.is_signed || to.is_signed);
}

bool is_text(const query::Type& type) {
  return type.kind == query::TypeKind::String || type.kind == query::TypeKind::Bytes;
}

}  // namespace

Coder::Coder(const query::Query& query, const query::Source& source,
             const CoderEnvironment& environment)
    : query_(query), source_(&source), environment_(environment), exit_(builder_.label()) {}

void Coder::begin() {
  builder_.move(kContext, Register::R1);
}

Expected<isa::Program> Coder::finish(std::string name) {
  builder_.bind(exit_).move(Register::R0, 0).exit();
  write_out_of_line();
  isa::Program program = CLEW_TRY(builder_.finish(std::move(name)));
  // What is out of line jumps back to the line; there are no cycles.
  CLEW_TRY(isa::validate_probe(program, {.loops_allowed = true}));
  return program;
}

Expected<int32_t> Coder::reserve(uint32_t size_bytes) {
  frame_used_ += static_cast<int32_t>((size_bytes + 7) / 8 * 8);
  if (frame_used_ > static_cast<int32_t>(isa::kFrameSizeBytes)) {
    return fail(ErrorCode::Limit,
                "the query needs more than 512 bytes of scratch memory in the probe; use shorter "
                "strings or fewer of them");
  }
  return -frame_used_;
}

void Coder::write_out_of_line() {
  for (size_t i = 0; i < out_of_line_.size(); ++i) {  // A writer may add another.
    const std::function<void()> write = out_of_line_[i];
    write();
  }
  out_of_line_.clear();
}

uint32_t Coder::site_constant(SiteConstant kind) {
  const auto found = std::find(site_constants_.begin(), site_constants_.end(), kind);
  if (found != site_constants_.end()) {
    return static_cast<uint32_t>(found - site_constants_.begin());
  }
  site_constants_.push_back(kind);
  return static_cast<uint32_t>(site_constants_.size() - 1);
}

void Coder::out_of_line(std::function<void()> write) {
  out_of_line_.push_back(std::move(write));
}

void Coder::count_loss(uint32_t header_offset) {
  builder_.load_window(Register::R2, header_offset)
      .load(Size::Double, Register::R3, Register::R2, 0)
      .alu(Alu::Add, Register::R3, 1)
      .store(Size::Double, Register::R2, 0, Register::R3);
}

// --- records -----------------------------------------------------------------------------------

// Offsets in instructions have 16 bits, so a place near the start of the window needs no addition.
int32_t Coder::record_place(Register place) {
  constexpr uint32_t kNear = 16'384;
  const abi::RecordLayout& records = environment_.records;
  const uint32_t size = records.record_size_bytes();
  const uint32_t mask = (1U << records.records_log2) - 1;
  builder_.load(Size::Double, Register::R1, kContext, offsetof(abi::Context, frame))
      .move(place, Register::R1);
  if (size == kFrameStep) {
    builder_.alu(Alu::And, place, static_cast<int32_t>(mask * size));
  } else {
    builder_.alu(Alu::ShiftRight, place, std::countr_zero(kFrameStep))
        .alu(Alu::And, place, static_cast<int32_t>(mask))
        .alu(Alu::Multiply, place, static_cast<int32_t>(size));
  }
  builder_.load_site_constant(Register::R3, site_constant(SiteConstant::RecordTag))
      .alu(Alu::Or, Register::R1, Register::R3);
  if (records.offset < kNear) return static_cast<int32_t>(records.offset);
  builder_.load_window(Register::R3, records.offset).alu(Alu::Add, place, Register::R3);
  return 0;
}

void Coder::take_record(const RecordUse& use) {
  const Label slow = builder_.label();
  const Label found = builder_.label();
  const Register place = use.arguments ? kRecord : kElapsed;
  const int32_t offset = record_place(place);
  builder_.load(Size::Double, Register::R3, place, offset)
      .jump_if(Jump::NotEqual, Register::R3, Register::R1, slow)
      .store(Size::Double, place, offset, 0);
  // Nothing is known of a pointer behind the label, so the word is loaded in front of it.
  if (use.elapsed) builder_.load(Size::Double, kElapsed, place, offset + 8);
  if (use.arguments) builder_.alu(Alu::Add, kRecord, offset + 8);
  builder_.bind(found);
  out_of_line([this, use, slow, found] {
    builder_.bind(slow)
        .call(abi::Accessor::RecordTake)
        .jump_if(Jump::Equal, Register::R0, 0, exit_);
    if (use.elapsed) builder_.load(Size::Double, kElapsed, Register::R0, 0);
    if (use.arguments) builder_.move(kRecord, Register::R0);
    builder_.jump(found);
  });
}

// The time comes last: what stands before it is not time of the traced function.
void Coder::record_payload(int32_t offset) {
  int32_t at = offset + (environment_.records_time ? 8 : 0);
  for (const uint16_t argument : environment_.record_arguments) {
    builder_.load(Size::Double, Register::R0, kContext, argument_offset(argument))
        .store(Size::Double, kRecord, at, Register::R0);
    at += 8;
  }
  record_origin(offset);
  if (!environment_.records_time) return;
  builder_.call(abi::Accessor::Time).store(Size::Double, kRecord, offset, Register::R0);
}

void Coder::put_record() {
  const Label slow = builder_.label();
  const int32_t offset = record_place(kRecord);
  builder_.load(Size::Double, Register::R3, kRecord, offset)
      .jump_if(Jump::NotEqual, Register::R3, 0, slow)
      .store(Size::Double, kRecord, offset, Register::R1);
  record_payload(offset + 8);
  out_of_line([this, slow] {
    builder_.bind(slow)
        .call(abi::Accessor::RecordPut)
        .jump_if(Jump::Equal, Register::R0, 0, exit_)
        .move(kRecord, Register::R0);
    record_payload(0);
    builder_.jump(exit_);
  });
}

Expected<void> Coder::measure_elapsed(bool keep_time) {
  builder_.call(abi::Accessor::Time);
  if (keep_time) stamp(Register::R10, CLEW_TRY(reserve(8)));
  builder_.alu(Alu::Subtract, Register::R0, kElapsed)
      .load_constant(Register::R2, environment_.tick_multiplier)
      .alu(Alu::Multiply, Register::R0, Register::R2)
      .alu(Alu::ShiftRight, Register::R0, static_cast<int32_t>(environment_.tick_shift))
      .move(kElapsed, Register::R0);
  return {};
}

// --- time --------------------------------------------------------------------------------------

void Coder::ticks() {
  if (ticks_) {
    builder_.load(Size::Double, Register::R0, ticks_->base, ticks_->offset);
  } else {
    builder_.call(abi::Accessor::Time);
  }
}

void Coder::stamp(Register base, int32_t offset) {
  ticks();
  builder_.store(Size::Double, base, offset, Register::R0);
  ticks_ = {.base = base, .offset = offset};
}

// r0 = nanoseconds of CLOCK_MONOTONIC. The ticks are scaled in two parts, so that a long time
// since `base_ticks` does not overflow.
void Coder::monotonic_time() {
  const auto shift = static_cast<int32_t>(environment_.tick_shift);
  ticks();
  builder_.load_constant(Register::R2, environment_.base_ticks)
      .alu(Alu::Subtract, Register::R0, Register::R2)
      .move(Register::R3, Register::R0)
      .alu(Alu::ShiftRight, Register::R3, 32)
      .move(Register::R0, Register::R0, Width::Bits32)
      .load_constant(Register::R2, environment_.tick_multiplier)
      .alu(Alu::Multiply, Register::R3, Register::R2)
      .alu(Alu::ShiftLeft, Register::R3, 32 - shift)
      .alu(Alu::Multiply, Register::R0, Register::R2)
      .alu(Alu::ShiftRight, Register::R0, shift)
      .alu(Alu::Add, Register::R0, Register::R3)
      .load_constant(Register::R2, environment_.base_ns)
      .alu(Alu::Add, Register::R0, Register::R2);
}

// --- expressions -------------------------------------------------------------------------------

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
    case ExpressionKind::JoinColumn:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
      break;
  }
  return fail(ErrorCode::InvalidQuery, "an expression is not an integer at the probe");
}

void Coder::canonical(const query::Type& type) {
  if (type.kind != query::TypeKind::Integer || type.size_bytes == 8) return;
  const uint32_t bits = 8U * type.size_bytes;
  if (type.is_signed) {
    builder_.move_signed(Register::R0, Register::R0, bits);
  } else if (bits == 32) {
    builder_.move(Register::R0, Register::R0, Width::Bits32);
  } else {
    builder_.alu(Alu::And, Register::R0, static_cast<int32_t>((1U << bits) - 1));
  }
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
  if (expression.kind != ExpressionKind::Field) return false;
  const auto context = [&](size_t offset) {
    builder_.load(Size::Double, into, kContext, static_cast<int32_t>(offset));
    return true;
  };
  switch (expression.field) {
    case Field::Argument:
      return context(static_cast<size_t>(argument_offset(expression.index)));
    case Field::ReturnValue:
      return context(offsetof(abi::Context, return_value));
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

Expected<void> Coder::field(const Expression& expression) {
  if (leaf(expression, Register::R0)) {
    // Thread ids are the kernel's; everything else has 8 bytes.
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
  if (divides(binary.binary) && binary.type.is_signed) {
    builder_.alu_signed(alu, Register::R0, right);
  } else {
    builder_.alu(alu, Register::R0, right);
  }
}

Expected<void> Coder::binary(const Expression& expression) {
  using query::BinaryOperator;
  const BinaryOperator op = expression.binary;
  if (is_comparison(op) || op == BinaryOperator::LogicalAnd || op == BinaryOperator::LogicalOr) {
    return truth(expression);
  }
  const Alu alu = alu_of(op, expression.type.is_signed);
  const int32_t count_mask = 8 * expression.type.size_bytes - 1;
  if (has_immediate(expression)) {
    CLEW_TRY(integer(expression.operands[0]));
    const auto number = static_cast<int32_t>(expression.operands[1].integer);
    put(expression, alu, shifts(op) ? number & count_mask : number);
  } else {
    CLEW_TRY(operands(expression.operands[0], expression.operands[1]));
    if (shifts(op)) builder_.alu(Alu::And, Register::R2, count_mask);
    put(expression, alu, Register::R2);
  }
  if (!stays_canonical(expression)) canonical(expression.type);
  return {};
}

Expected<void> Coder::conditional(const Expression& expression) {
  const Label otherwise = builder_.label();
  const Label done = builder_.label();
  CLEW_TRY(branch(expression.operands[0], false, otherwise));
  CLEW_TRY(integer(expression.operands[1]));
  builder_.jump(done).bind(otherwise);
  CLEW_TRY(integer(expression.operands[2]));
  builder_.bind(done);
  return {};
}

Expected<void> Coder::truth(const Expression& expression) {
  const Label no = builder_.label();
  const Label done = builder_.label();
  CLEW_TRY(branch(expression, false, no));
  builder_.move(Register::R0, 1).jump(done).bind(no).move(Register::R0, 0).bind(done);
  return {};
}

Expected<void> Coder::branch(const Expression& expression, bool when, Label target) {
  using query::BinaryOperator;
  if (expression.kind == ExpressionKind::Unary && expression.unary == query::UnaryOperator::Not) {
    return branch(expression.operands[0], !when, target);
  }
  if (expression.kind == ExpressionKind::In) return branch_in(expression, when, target);
  if (expression.kind == ExpressionKind::Call &&
      expression.function == query::Function::StartsWith) {
    return branch_text(expression, when, target);
  }
  if (expression.kind == ExpressionKind::Binary) {
    const BinaryOperator op = expression.binary;
    if (op == BinaryOperator::LogicalAnd || op == BinaryOperator::LogicalOr) {
      return branch_logical(expression, when, target);
    }
    if (is_comparison(op)) {
      return is_text(expression.operands[0].type) ? branch_text(expression, when, target)
                                                  : branch_compare(expression, when, target);
    }
  }
  CLEW_TRY(integer(expression));
  builder_.jump_if(when ? Jump::NotEqual : Jump::Equal, Register::R0, 0, target);
  return {};
}

Expected<void> Coder::branch_logical(const Expression& expression, bool when, Label target) {
  // An `and` is false as soon as one operand is; an `or` is true as soon as one is.
  const bool short_cut = expression.binary == query::BinaryOperator::LogicalOr;
  if (when == short_cut) {
    CLEW_TRY(branch(expression.operands[0], when, target));
    return branch(expression.operands[1], when, target);
  }
  const Label decided = builder_.label();
  CLEW_TRY(branch(expression.operands[0], short_cut, decided));
  CLEW_TRY(branch(expression.operands[1], when, target));
  builder_.bind(decided);
  return {};
}

Expected<void> Coder::branch_compare(const Expression& expression, bool when, Label target) {
  const Expression& right = expression.operands[1];
  const bool is_signed = expression.operands[0].type.is_signed;
  Jump jump = comparison(expression.binary, is_signed);
  if (!when) jump = inverse(jump);
  // The immediate of a comparison is sign-extended, whatever the comparison.
  if (right.kind == ExpressionKind::Integer && fits_immediate(right.integer)) {
    CLEW_TRY(integer(expression.operands[0]));
    builder_.jump_if(jump, Register::R0, static_cast<int32_t>(right.integer), target);
    return {};
  }
  CLEW_TRY(operands(expression.operands[0], right));
  builder_.jump_if(jump, Register::R0, Register::R2, target);
  return {};
}

Expected<void> Coder::branch_in(const Expression& expression, bool when, Label target) {
  const Expression& needle = expression.operands[0];
  const Label found = when ? target : builder_.label();
  const int32_t mark = frame_used_;
  if (is_text(needle.type)) {
    const int32_t area = CLEW_TRY(text_in_frame(needle));
    for (size_t i = 1; i < expression.operands.size(); ++i) {
      test_text({.left = area,
                 .capacity = 8 * stored_words(needle),
                 .right = expression.operands[i].text,
                 .prefix = false,
                 .zero_padded = needle.type.kind == query::TypeKind::String},
                true, found);
    }
  } else {
    CLEW_TRY(integer(needle));
    for (size_t i = 1; i < expression.operands.size(); ++i) {
      const int64_t candidate = expression.operands[i].integer;
      if (fits_immediate(candidate)) {
        builder_.jump_if(Jump::Equal, Register::R0, static_cast<int32_t>(candidate), found);
        continue;
      }
      builder_.load_constant(Register::R2, static_cast<uint64_t>(candidate))
          .jump_if(Jump::Equal, Register::R0, Register::R2, found);
    }
  }
  release(mark);
  if (!when) builder_.jump(target).bind(found);
  return {};
}

Expected<void> Coder::choose_extreme(const Expression& expression) {
  CLEW_TRY(operands(expression.operands[0], expression.operands[1]));
  const bool smaller = expression.function == query::Function::Min;
  const Label done = builder_.label();
  const auto op = smaller ? query::BinaryOperator::LessEqual : query::BinaryOperator::GreaterEqual;
  builder_.jump_if(comparison(op, expression.type.is_signed), Register::R0, Register::R2, done)
      .move(Register::R0, Register::R2)
      .bind(done);
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
    case Function::Len:
      return fail(ErrorCode::InvalidQuery, "len is not available at the probe");
    case Function::Substr:
    case Function::Contains:
    case Function::Like:
    case Function::Hex:
    case Function::MovingAverage:
    case Function::SketchSample:
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
