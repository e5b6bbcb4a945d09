// SPDX-License-Identifier: Apache-2.0
// Expressions: each leaves its value in r0.
#include <utility>

#include "base/assert.h"
#include "plan/d/clause_coder.h"
#include "plan/d/one_of.h"
#include "plan/operation.h"

namespace clew::plan::d {

using abi::MachineAccessor;
using isa::Alu;
using isa::Jump;
using isa::Label;
using query::d::BinaryOperator;
using query::d::NodeKind;
using query::d::Storage;
using query::d::TypeKind;
using query::d::UnaryOperator;

void ClauseCoder::value(const Node& node) {
  if (node.line != 0) line_ = node.line;
  switch (node.kind) {
    case NodeKind::Integer:
    case NodeKind::SizeOf:
    case NodeKind::OffsetOf:
      code().load_constant(Register::R0, node.integer);
      return;
    case NodeKind::String:
      code().move(Register::R0, static_cast<int32_t>(storage_.literal(node.text)));
      return;
    case NodeKind::Identifier:
      return identifier(node);
    case NodeKind::Index:
    case NodeKind::Member:
    case NodeKind::Arrow: {
      if (node.storage == Storage::Argument || node.storage == Storage::Builtin) {
        return builtin(node);
      }
      const Place from = place(node);
      load(from);
      return release(from);
    }
    case NodeKind::Call:
      return subroutine(node);
    case NodeKind::Unary:
      return unary(node);
    case NodeKind::Binary:
      return binary(node);
    case NodeKind::Assign:
      return assign(node);
    case NodeKind::Conditional:
      return conditional(node);
    case NodeKind::Comma:
      value(node.operands[0]);
      return value(node.operands[1]);
    case NodeKind::Cast:
      return cast(node);
    case NodeKind::StringOf:
      return string_of(node);
    case NodeKind::Translate:
      return translated(node);
    case NodeKind::Aggregation:  // The checker left none.
      code().move(Register::R0, 0);
      return;
  }
}

void ClauseCoder::identifier(const Node& node) {
  if (node.storage == Storage::Builtin || node.storage == Storage::Argument) return builtin(node);
  const Place from = place(node);
  load(from);
  release(from);
}

// --- operators -----------------------------------------------------------------------------------

void ClauseCoder::unary(const Node& node) {
  const Node& operand = node.operands[0];
  switch (node.unary) {
    case UnaryOperator::Plus:
      value(operand);
      return convert(operand.type, node.type);
    case UnaryOperator::Negate:
      value(operand);
      code().negate(Register::R0);
      return emit_.fit(Register::R0, node.type);
    case UnaryOperator::Complement:
      value(operand);
      code().alu(Alu::Xor, Register::R0, -1);
      return emit_.fit(Register::R0, node.type);
    case UnaryOperator::Not: {
      truth(operand);
      const Label zero = code().label();
      code().move(Register::R1, Register::R0).move(Register::R0, 1);
      code().jump_if(Jump::Equal, Register::R1, 0, zero).move(Register::R0, 0).bind(zero);
      return;
    }
    case UnaryOperator::Dereference: {
      const Place from = place(node);
      load(from);
      return release(from);
    }
    case UnaryOperator::AddressOf: {
      const Place of = place(operand);
      address_of(of);
      return release(of);
    }
    case UnaryOperator::PreIncrement:
    case UnaryOperator::PreDecrement:
    case UnaryOperator::PostIncrement:
    case UnaryOperator::PostDecrement:
      return increment(node);
  }
}

void ClauseCoder::increment(const Node& node) {
  const bool is_post =
      node.unary == UnaryOperator::PostIncrement || node.unary == UnaryOperator::PostDecrement;
  const bool is_up =
      node.unary == UnaryOperator::PreIncrement || node.unary == UnaryOperator::PostIncrement;
  const Place at = place(node.operands[0]);
  load(at);
  const Slot before = emit_.push();
  const auto step = static_cast<int32_t>(std::max<uint64_t>(node.integer, 1));
  code().alu(is_up ? Alu::Add : Alu::Subtract, Register::R0, step);
  convert(at.type, at.type);
  const Slot after = emit_.push();
  store(at, after);
  emit_.load(Register::R0, is_post ? before : after);
  cut_to_bits(at);
  emit_.release();
  emit_.release();
  release(at);
}

query::d::TypeId ClauseCoder::common_type(TypeId left, TypeId right) const {
  if (!types().is_integer(left) || !types().is_integer(right)) return types().integer(8, false);
  const uint32_t size = std::max({4U, types().size_of(left), types().size_of(right)});
  const auto stays_unsigned = [&](TypeId type) {
    return !types().is_signed(type) && types().size_of(type) == size;
  };
  return types().integer(size, !stays_unsigned(left) && !stays_unsigned(right));
}

uint32_t ClauseCoder::element_bytes(TypeId pointer) const {
  const TypeId target = types().stripped(pointer).target;
  return std::max(1U, target == query::d::kNoType ? 1U : types().size_of(target));
}

void ClauseCoder::binary(const Node& node) {
  const Node& left = node.operands[0];
  const Node& right = node.operands[1];
  const bool is_cut = !std::exchange(is_part_, false);
  if (query::is_logical(node.binary)) return logical(node);
  if (const auto since = tick_word(elapsed_since(script_, node))) return elapsed(*since, node.type);
  if (class_of(types(), left.type) == ValueClass::String ||
      class_of(types(), right.type) == ValueClass::String) {
    return compare_strings(node);
  }
  part(left);
  const Slot held = emit_.push();
  part(right);
  code().move(Register::R1, Register::R0);
  emit_.load(Register::R0, held);
  emit_.release();
  arithmetic(node.binary, left.type, right.type, query::d::kNoType);
  if (is_cut) emit_.fit(Register::R0, node.type);
}

// An operand of signed arithmetic that is such itself: what overflows its type is kept. (C leaves
// that open; unsigned types wrap as it says.)
void ClauseCoder::part(const Node& node) {
  const bool is_computed = node.kind == NodeKind::Binary && types().is_integer(node.type) &&
                           types().is_signed(node.type);
  is_part_ = is_computed && is_one_of(node.binary, BinaryOperator::Multiply, BinaryOperator::Add,
                                      BinaryOperator::Subtract, BinaryOperator::ShiftLeft,
                                      BinaryOperator::Divide, BinaryOperator::Modulo);
  value(node);
  is_part_ = false;
}

// r0 = r0 op r1. Without a result's type the operands are values of theirs, or parts, and nothing
// is cut.
void ClauseCoder::arithmetic(BinaryOperator op, TypeId left, TypeId right, TypeId result) {
  const TypeId common = common_type(left, right);
  const bool is_signed = types().is_signed(common);
  const auto fit = [&](Register value, TypeId type) {
    if (result != query::d::kNoType) emit_.fit(value, type);
  };
  if (query::is_comparison(op)) {
    fit(Register::R0, common);
    fit(Register::R1, common);
    return compare(op, is_signed);
  }
  if (query::divides(op)) {
    fit(Register::R0, common);
    fit(Register::R1, common);
    divide(op, is_signed);
  } else {  // A shift has the type of its left operand.
    const bool is_arithmetic = types().is_signed(left) || types().size_of(left) < 4;
    code().alu(alu_of(op, is_arithmetic), Register::R0, Register::R1);
  }
  fit(Register::R0, result);
}

void ClauseCoder::divide(BinaryOperator op, bool is_signed) {
  const Label fine = code().label();
  code().jump_if(Jump::NotEqual, Register::R1, 0, fine);
  emit_.fail_with(abi::MachineFault::DivideByZero, Register::R1);
  code().bind(fine);
  const Alu alu = alu_of(op, is_signed);
  if (is_signed) {
    code().alu_signed(alu, Register::R0, Register::R1);
  } else {
    code().alu(alu, Register::R0, Register::R1);
  }
}

void ClauseCoder::compare(BinaryOperator op, bool is_signed) {
  const Jump jump = jump_of(op, is_signed);
  const Label holds = code().label();
  code().move(Register::R2, Register::R0).move(Register::R0, 1);
  code().jump_if(jump, Register::R2, Register::R1, holds).move(Register::R0, 0).bind(holds);
}

// Both operands as strings; an integer operand is a NULL constant.
void ClauseCoder::compare_strings(const Node& node) {
  string_of(node.operands[0]);
  const Slot left = emit_.push();
  string_of(node.operands[1]);
  code().move(Register::R3, Register::R0);
  emit_.load(Register::R2, left);
  emit_.release();
  emit_.call(MachineAccessor::StringCompare);
  code().move(Register::R1, 0);
  compare(node.binary, true);
}

// An operand as a condition.
void ClauseCoder::truth(const Node& node) {
  value(node);
}

void ClauseCoder::logical(const Node& node) {
  const Label end = code().label();
  truth(node.operands[0]);
  const auto to_bool = [&] {
    const Label zero = code().label();
    code().jump_if(Jump::Equal, Register::R0, 0, zero).move(Register::R0, 1).bind(zero);
  };
  to_bool();
  if (node.binary == BinaryOperator::LogicalAnd) {
    code().jump_if(Jump::Equal, Register::R0, 0, end);
  } else if (node.binary == BinaryOperator::LogicalOr) {
    code().jump_if(Jump::NotEqual, Register::R0, 0, end);
  } else {
    const Slot left = emit_.push();
    truth(node.operands[1]);
    to_bool();
    emit_.load(Register::R1, left);
    emit_.release();
    code().alu(Alu::Xor, Register::R0, Register::R1);
    return;
  }
  truth(node.operands[1]);
  to_bool();
  code().bind(end);
}

void ClauseCoder::conditional(const Node& node) {
  const Label otherwise = code().label();
  const Label end = code().label();
  const bool is_string = class_of(types(), node.type) == ValueClass::String;
  const auto branch = [&](const Node& operand) {
    if (is_string) return string_of(operand);
    value(operand);
    convert(operand.type, node.type);
  };
  truth(node.operands[0]);
  code().jump_if(Jump::Equal, Register::R0, 0, otherwise);
  branch(node.operands[1]);
  code().jump(end).bind(otherwise);
  branch(node.operands[2]);
  code().bind(end);
}

void ClauseCoder::assign(const Node& node) {
  const Node& target = node.operands[0];
  const Node& source = node.operands[1];
  if (const auto word = tick_word(noted_time(script_, node))) return note_time(*word);
  if (node.is_compound) {
    const Place at = place(target);
    load(at);
    const Slot before = emit_.push();
    value(source);
    code().move(Register::R1, Register::R0);
    emit_.load(Register::R0, before);
    emit_.release();
    const TypeId left =
        query::d::is_narrow_bit_field(target) ? types().integer(4, true) : target.type;
    arithmetic(node.binary, left, source.type, common_type(left, source.type));
    convert(target.type, target.type);
    const Slot after = emit_.push();
    store(at, after);
    emit_.pop(Register::R0);
    cut_to_bits(at);
    return release(at);
  }
  const bool is_zero = source.kind == NodeKind::Integer && source.integer == 0;
  if (is_zero && class_of(types(), target.type) == ValueClass::Bytes) return remove(target);
  if (class_of(types(), target.type) == ValueClass::String) {
    string_of(source);
  } else {
    object_or_value(source);
    convert(source.type, target.type);
  }
  const Slot held = emit_.push();
  const Place at = place(target);
  store(at, held);
  release(at);
  emit_.pop(Register::R0);
  cut_to_bits(at);
}

// A value; of a struct or an array of the traced program a copy, as it is read by other rules.
void ClauseCoder::object_or_value(const Node& node) {
  value(node);
  if (!node.is_userland || class_of(types(), node.type) != ValueClass::Bytes) return;
  const uint32_t size = copied(std::max(1U, types().size_of(node.type)));
  const uint32_t room = temporary(size);
  code().move(Register::R3, Register::R0);
  emit_.argument(Register::R2, room);
  emit_.argument(Register::R4, size);
  emit_.argument(Register::R5, 1);
  emit_.call_checked(MachineAccessor::Copy);
  code().load_constant(Register::R0, abi::kMachineWindowTag + room);
}

// A translated object lives in scratch, until the clause ends: its value is its address.
void ClauseCoder::translated(const Node& node) {
  const query::d::Type& type = types().stripped(node.type);
  const TypeId record = type.kind == TypeKind::Pointer ? type.target : node.type;
  emit_.argument(Register::R2, std::max(1U, types().size_of(record)));
  emit_.call_checked(MachineAccessor::Alloca);
  const Slot object = emit_.push();
  for (const Node& member : node.operands) {
    store_member(object, member);
  }
  emit_.load(Register::R0, object);
  emit_.release();
}

void ClauseCoder::store_member(Slot object, const Node& member) {
  const Node& source = member.operands[0];
  Place at = member_place_at({.kind = Place::Kind::Address, .slot = object}, member);
  if (class_of(types(), source.type) == ValueClass::String) {
    string_of(source);
    return store_text(at, object);
  }
  object_or_value(source);
  convert(source.type, member.type);
  const Slot held = emit_.push();
  store(at, held);
  emit_.release();
}

// The string in r0 to an array of characters or a string in scratch.
void ClauseCoder::store_text(const Place& at, Slot object) {
  const uint32_t room = std::min(std::max(1U, types().size_of(at.type)), storage_.string_bytes());
  code().move(Register::R3, Register::R0);
  emit_.load(Register::R2, object);
  code().alu(Alu::Add, Register::R2, static_cast<int32_t>(at.offset));
  code().alu(Alu::And, Register::R2, static_cast<int32_t>(abi::kMachineWindowBytes - 1));
  emit_.argument(Register::R4, room);
  emit_.call(MachineAccessor::PadString);
}

// A struct or array is assigned 0: an element ends to exist, other variables become all zero.
void ClauseCoder::remove(const Node& target) {
  const Place at = place(target);
  if (at.kind == Place::Kind::Dynamic && !at.is_member) {
    write_key(at);
    emit_.argument(Register::R2, storage_.home(at.variable).number);
    emit_.call(MachineAccessor::VariableDelete);
  } else {
    const uint32_t size = types().size_of(at.type);
    const uint32_t room = temporary(size);
    for (uint32_t done = 0; done < size; done += 8) {
      code().load_window(Register::R1, room + done).store(isa::Size::Double, Register::R1, 0, 0);
    }
    code().load_constant(Register::R0, abi::kMachineWindowTag + room);
    const Slot zeros = emit_.push();
    store(at, zeros);
    emit_.release();
  }
  release(at);
  code().move(Register::R0, 0);
}

// --- conversions ---------------------------------------------------------------------------------

void ClauseCoder::convert(TypeId from, TypeId to) {
  if (class_of(types(), to) != ValueClass::Scalar) return;
  if (class_of(types(), from) == ValueClass::String) {
    // A string as a pointer: its tagged address, NULL stays 0.
    const Label null = code().label();
    code().jump_if(Jump::Equal, Register::R0, 0, null);
    code().load_constant(Register::R1, abi::kMachineWindowTag);
    code().alu(Alu::Or, Register::R0, Register::R1).bind(null);
    return;
  }
  if (types().stripped(to).name == "_Bool") {
    const Label zero = code().label();
    code().jump_if(Jump::Equal, Register::R0, 0, zero).move(Register::R0, 1).bind(zero);
    return;
  }
  emit_.fit(Register::R0, to);
}

void ClauseCoder::cast(const Node& node) {
  const Node& operand = node.operands[0];
  if (class_of(types(), node.type) == ValueClass::String) return string_of(operand);
  const bool is_array = types().stripped(operand.type).kind == TypeKind::Array;
  const bool is_place = is_one_of(operand.kind, NodeKind::Identifier, NodeKind::Index,
                                  NodeKind::Member, NodeKind::Arrow);
  if (is_array && is_place && operand.storage == Storage::Variable) {
    const Place of = place(operand);
    address_of(of);
    return release(of);
  }
  value(operand);
  convert(operand.type, node.type);
}

// The operand as a string: strings as they are, pointers and arrays of characters by copy.
void ClauseCoder::string_of(const Node& node) {
  if (node.kind == NodeKind::StringOf) return string_of(node.operands[0]);
  if (node.kind == NodeKind::Cast && class_of(types(), node.type) == ValueClass::String) {
    return string_of(node.operands[0]);
  }
  value(node);
  if (class_of(types(), node.type) == ValueClass::String) return;
  if (node.kind == NodeKind::Integer && node.integer == 0) return;
  uint32_t size = storage_.string_size_bytes();
  const query::d::Type& type = types().stripped(node.type);
  if (type.kind == TypeKind::Array && type.count != 0) size = std::min(size, type.count + 1);
  code()
      .move(Register::R3, Register::R0)
      .move(Register::R2, static_cast<int32_t>(string_temporary()))
      .move(Register::R4, static_cast<int32_t>(size))
      .move(Register::R5, node.is_userland ? 1 : 0);
  emit_.call_checked(MachineAccessor::ReadString);
}

}  // namespace clew::plan::d
