// SPDX-License-Identifier: Apache-2.0
// Members, pointers and casts: everything that reads the traced program's memory.
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/fields.h"
#include "query/token.h"

namespace clew::query {

// --- members -------------------------------------------------------------------------------------

Expected<Value> Evaluator::member(const SyntaxExpression& syntax) {
  const Value value = CLEW_TRY(evaluate(syntax.kids[0]));
  return member_of(value, syntax);
}

Expected<Value> Evaluator::member_of(const Value& value, const SyntaxExpression& syntax) {
  const std::string_view name = syntax.text;
  const Span span = syntax.kind == SyntaxKind::Member ? syntax.name_span : syntax.span;
  switch (value.kind) {
    case Value::Kind::Event:
      return event_member(value, name, span);
    case Value::Kind::Arguments:
    case Value::Kind::EntryArguments:
      return parameter(value, name, span);
    case Value::Kind::Entry:
      return entry_member(value, name, span);
    case Value::Kind::Record:
    case Value::Kind::Group: {
      const Value* found = find_member(value.members, name);
      if (found != nullptr && !name.empty()) return *found;
      std::vector<std::string_view> names;
      names.reserve(value.members.size());
      for (const NamedValue& candidate : value.members) {
        names.push_back(candidate.name);
      }
      const bool is_group = value.kind == Value::Kind::Group;
      return fail(span, fmt::format("{} has no member '{}'{}", is_group ? "a group" : "this record",
                                    name, did_you_mean(name, names)));
    }
    case Value::Kind::Scalar:
      if (value.expression.type.kind == TypeKind::String && same_word(name, "Length")) {
        return scalar_value(CLEW_TRY(text_call(Function::Len, {value.expression}, at(span))));
      }
      return c_member(value, name, span);
    case Value::Kind::Place:
    case Value::Kind::Registers:
      return c_member(value, name, span);
    case Value::Kind::Deadline:
    case Value::Kind::State:
      break;
  }
  return fail(span, fmt::format("no member '{}' here", name));
}

Expected<Value> Evaluator::c_member(const Value& value, std::string_view name, Span span) {
  CTypeRef type = value.c_type;
  CTypeInfo known = build_.types.describe(type);
  if (value.kind == Value::Kind::Scalar && known.kind == CKind::Pointer) {
    type = known.target;
    known = build_.types.describe(type);
  } else if (value.kind == Value::Kind::Scalar) {
    return fail(span, fmt::format("no member '{}': this is {}, and no pointer to a known struct",
                                  name, name_of(value.expression.type)));
  }
  if (known.kind != CKind::Record) {
    return fail(span, fmt::format("no member '{}': '{}' is not a struct", name,
                                  known.name.empty() ? "this" : known.name));
  }
  const std::vector<CMember> members = build_.types.members(type);
  std::vector<std::string_view> names;
  for (const CMember& candidate : members) {
    names.push_back(candidate.name);
    if (candidate.name != name) continue;
    if (value.kind == Value::Kind::Registers) return register_member(value, candidate, span);
    Expression offset =
        integer_constant(static_cast<int64_t>(candidate.offset_bytes), kUint64, at(span));
    Expression address = CLEW_TRY(offset_address(value.expression, std::move(offset), 1, span));
    if (candidate.bit_size != 0) return read_bit_field(std::move(address), candidate, span);
    return read_place(std::move(address), foreign(candidate.type), span);
  }
  return fail(
      span, fmt::format("'{}' has no member '{}'{}", known.name, name, did_you_mean(name, names)));
}

// A member of a record that registers hold; a record in it stays there.
Expected<Value> Evaluator::register_member(const Value& value, const CMember& member, Span span) {
  const uint64_t offset = value.offset_bytes + member.offset_bytes;
  const CTypeInfo known = build_.types.describe(foreign(member.type));
  const bool fits = offset / 8 < value.members.size() && offset % 8 + known.size_bytes <= 8;
  if (known.kind == CKind::Record && offset + known.size_bytes <= 8 * value.members.size()) {
    Value inner = value;
    inner.c_type = foreign(member.type);
    inner.offset_bytes = offset;
    return inner;
  }
  if (!fits || member.bit_size != 0 || known.kind == CKind::Float) {
    return fail(
        span, fmt::format("the member '{}' of a record in registers cannot be read", member.name));
  }
  Expression word = convert(value.members[offset / 8].value.expression, kUint64);
  if (offset % 8 != 0) {
    word = CLEW_TRY(make_binary(
        build_.report, BinaryOperator::ShiftRight,
        {std::move(word), integer_constant(static_cast<int64_t>(8 * (offset % 8)), kUint64, span)},
        at(span)));
  }
  return from_register(std::move(word), foreign(member.type), span);
}

// The value of a type at an address; records and arrays stay places.
Expected<Value> Evaluator::read_place(Expression address, const CTypeRef& type, Span span) {
  const CTypeInfo known = build_.types.describe(type);
  switch (known.kind) {
    case CKind::Record:
    case CKind::Array: {
      Value place = value_of_kind(Value::Kind::Place);
      place.expression = std::move(address);
      place.c_type = type;
      return place;
    }
    case CKind::Integer:
    case CKind::Boolean:
    case CKind::Enumeration:
    case CKind::Pointer:
    case CKind::Float: {
      Expression load;
      load.kind = ExpressionKind::Load;
      load.type = known.type;
      load.span = at(span);
      load.operands.push_back(std::move(address));
      return scalar_value(std::move(load), type);
    }
    case CKind::Void:
      return fail(span, "a pointer to void cannot be read; cast it first");
    case CKind::Function:
    case CKind::Other:
      break;
  }
  return fail(span, fmt::format("a value of type '{}' cannot be read", known.name));
}

// Shifts the field's bits to the top of its storage and back, which extends its sign as well.
Expected<Value> Evaluator::read_bit_field(Expression address, const CMember& member, Span span) {
  const CTypeInfo known = build_.types.describe(foreign(member.type));
  Type storage = known.type;
  const unsigned bits = member.bit_offset + member.bit_size;
  // Read no more bytes than the field touches: the struct may end at a page's end.
  storage.size_bytes = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
  storage.enumeration = 0;
  if (known.type.size_bytes == 0 || bits > 64 || member.bit_size > known.type.size_bytes * 8U) {
    return fail(span, fmt::format("the bit-field '{}' cannot be read", member.name));
  }
  Expression load;
  load.kind = ExpressionKind::Load;
  load.type = storage;
  load.span = at(span);
  load.operands.push_back(std::move(address));
  const Type wide{.is_signed = known.type.is_signed};
  Expression value = convert(std::move(load), wide);
  const int64_t up = 64 - static_cast<int64_t>(bits);
  const int64_t down = 64 - static_cast<int64_t>(member.bit_size);
  value =
      CLEW_TRY(make_binary(build_.report, BinaryOperator::ShiftLeft,
                           {std::move(value), integer_constant(up, kUint64, at(span))}, at(span)));
  value = CLEW_TRY(make_binary(build_.report, BinaryOperator::ShiftRight,
                               {std::move(value), integer_constant(down, kUint64, at(span))},
                               at(span)));
  return scalar_value(convert(std::move(value), known.type));
}

// --- pointers ------------------------------------------------------------------------------------

// address + index * scale
Expected<Expression> Evaluator::offset_address(Expression address, Expression index, uint64_t scale,
                                               Span span) {
  if (!is_integer(index)) {
    return fail(span, fmt::format("a pointer moves by an integer, not by {}", name_of(index.type)));
  }
  index = convert(std::move(index), kUint64);
  index.type.unit = Unit::None;
  if (scale != 1) {
    Expression size = integer_constant(static_cast<int64_t>(scale), kUint64, at(span));
    index = CLEW_TRY(make_binary(build_.report, BinaryOperator::Multiply,
                                 {std::move(index), std::move(size)}, at(span)));
  }
  if (index.kind == ExpressionKind::Integer && index.integer == 0) return address;
  return make_binary(build_.report, BinaryOperator::Add, {std::move(address), std::move(index)},
                     at(span));
}

Expected<Value> Evaluator::pointer_sum(const SyntaxExpression& syntax, Value pointer,
                                       Expression amount) {
  const CTypeInfo type = build_.types.describe(pointer.c_type);
  const CTypeInfo target = build_.types.describe(type.target);
  if (pointer.kind == Value::Kind::Place && type.kind != CKind::Array) {
    return fail(syntax.span, "a struct has no arithmetic; choose a member");
  }
  if (syntax.binary == BinaryOperator::Subtract) {
    amount = CLEW_TRY(
        make_unary(build_.report, UnaryOperator::Negate, std::move(amount), at(syntax.span)));
  }
  const uint64_t scale = target.kind == CKind::Void ? 1 : target.size_bytes;
  if (scale == 0) return fail(syntax.span, "the size of what this points to is not known");
  Expression address = CLEW_TRY(
      offset_address(std::move(pointer.expression), std::move(amount), scale, syntax.span));
  CTypeRef result = type.target;
  ++result.pointers;
  return scalar_value(std::move(address), result);
}

Expected<Value> Evaluator::index(const SyntaxExpression& syntax) {
  const Value value = CLEW_TRY(evaluate(syntax.kids[0]));
  if (value.kind == Value::Kind::Record && syntax.kids[1].kind == SyntaxKind::String) {
    // A member whose name is no word: row["key.pid"].
    SyntaxExpression named = syntax;
    named.text = syntax.kids[1].text;
    return member_of(value, named);
  }
  const CTypeInfo type = build_.types.describe(value.c_type);
  const bool is_array = type.kind == CKind::Array || type.kind == CKind::Pointer;
  const bool is_memory = value.kind == Value::Kind::Scalar || value.kind == Value::Kind::Place;
  if (!is_memory || !is_array) {
    return fail(syntax.span, "only pointers and arrays of known type have elements");
  }
  const CTypeInfo target = build_.types.describe(type.target);
  if (target.size_bytes == 0) return fail(syntax.span, "the size of an element is not known");
  Expression position = CLEW_TRY(number(syntax.kids[1]));
  const bool is_outside = value.kind == Value::Kind::Place && type.count != 0 &&
                          position.kind == ExpressionKind::Integer &&
                          static_cast<uint64_t>(position.integer) >= type.count;
  if (is_outside) {
    return fail(syntax.kids[1].span, fmt::format("the array has {} elements", type.count));
  }
  Expression address = CLEW_TRY(
      offset_address(value.expression, std::move(position), target.size_bytes, syntax.span));
  return read_place(std::move(address), type.target, syntax.span);
}

Expected<Value> Evaluator::dereference(const SyntaxExpression& syntax) {
  const Value value = CLEW_TRY(evaluate(syntax.kids[0]));
  const CTypeInfo type = build_.types.describe(value.c_type);
  const bool is_memory = value.kind == Value::Kind::Scalar || value.kind == Value::Kind::Place;
  if (!is_memory || (type.kind != CKind::Pointer && type.kind != CKind::Array)) {
    return fail(syntax.span, "'*' needs a pointer of known type; cast it: *(int*)(e.arg0)");
  }
  return read_place(value.expression, type.target, syntax.span);
}

Expected<Value> Evaluator::address_of(const SyntaxExpression& syntax) {
  Value value = CLEW_TRY(evaluate(syntax.kids[0]));
  const bool is_place = value.kind == Value::Kind::Place;
  const bool is_load =
      value.kind == Value::Kind::Scalar && value.expression.kind == ExpressionKind::Load;
  if (!is_place && !is_load) return fail(syntax.span, "'&' needs something that lies in memory");
  CTypeRef type = value.c_type;
  CLEW_ASSERT(type.pointers < std::numeric_limits<uint8_t>::max());  // kNestingMax is less.
  ++type.pointers;
  if (is_place) return scalar_value(std::move(value.expression), type);
  Expression address = value.expression.operands[0];
  return scalar_value(std::move(address), type);
}

// --- casts ---------------------------------------------------------------------------------------

Expected<Expression> Evaluator::address_of_value(Value value, Span span) {
  if (value.kind == Value::Kind::Place) return std::move(value.expression);
  Expression address = CLEW_TRY(to_scalar(std::move(value), span));
  if (address.type.kind == TypeKind::Symbol) {
    return fail(span, "a code address is not a pointer to data");
  }
  if (!is_integer(address)) {
    return fail(span, fmt::format("expected an address, not {}", name_of(address.type)));
  }
  return convert(std::move(address), kAddress);
}

Expected<Value> Evaluator::cast(const SyntaxExpression& syntax) {
  const std::optional<CTypeRef> type = build_.types.find(syntax.cast.name, syntax.cast.pointers);
  if (!type) {
    return fail(syntax.span, fmt::format("no type '{}'{}", syntax.cast.name,
                                         build_.types.source() == nullptr
                                             ? "; types of a program need its debug information"
                                             : ""));
  }
  Value value = CLEW_TRY(evaluate(syntax.kids[0]));
  if (value.kind == Value::Kind::Place) {
    Expression address = CLEW_TRY(address_of_value(std::move(value), syntax.span));
    return cast_to(std::move(address), *type, syntax.span);
  }
  Expression operand = CLEW_TRY(to_scalar(std::move(value), syntax.kids[0].span));
  if (is_histogram(operand)) return fail(syntax.span, "a histogram is not a number");
  return cast_to(std::move(operand), *type, syntax.span);
}

// The function at a code address, by name.
Expected<Value> Evaluator::symbol_at(Expression address, Span span) {
  if (address.type.kind == TypeKind::Symbol) return scalar_value(std::move(address));
  if (!is_integer(address)) {
    return fail(span, fmt::format("a symbol is at an address, not at {}", name_of(address.type)));
  }
  Expression symbol;
  symbol.kind = ExpressionKind::Convert;
  symbol.type = {.kind = TypeKind::Symbol, .is_signed = false, .unit = Unit::Address};
  symbol.span = at(span);
  symbol.operands.push_back(convert(std::move(address), kUint64));
  return scalar_value(std::move(symbol));
}

Expected<Value> Evaluator::cast_to(Expression operand, const CTypeRef& type, Span span) {
  const CTypeInfo known = build_.types.describe(type);
  if (type.base == CTypeRef::Base::Symbol && type.pointers == 0)
    return symbol_at(std::move(operand), span);
  const bool is_scalar_type = known.kind == CKind::Integer || known.kind == CKind::Float ||
                              known.kind == CKind::Pointer || known.kind == CKind::Enumeration;
  if (!is_scalar_type) return fail(span, "a cast gives a number or a pointer");
  if (operand.type.kind == TypeKind::Symbol && known.kind != CKind::Float) {
    // A code address as a number, to compute with.
    Expression number;
    number.kind = ExpressionKind::Convert;
    number.type = known.type;
    number.span = at(span);
    number.operands.push_back(std::move(operand));
    return scalar_value(std::move(number), type);
  }
  if (!is_number(operand)) {
    return fail(span, fmt::format("{} cannot be cast", name_of(operand.type)));
  }
  if (known.kind == CKind::Pointer && !is_integer(operand)) {
    return fail(span, fmt::format("{} cannot be cast to a pointer", name_of(operand.type)));
  }
  const bool drops_address = operand.type.unit == Unit::Address && known.kind == CKind::Integer &&
                             same_representation(operand.type, known.type);
  const bool drops_enumeration = operand.type.enumeration != 0 && known.type.enumeration == 0 &&
                                 same_representation(operand.type, known.type);
  if (!drops_address && !drops_enumeration) {
    return scalar_value(convert(std::move(operand), known.type), type);
  }
  if (operand.kind == ExpressionKind::Integer) {
    return scalar_value(integer_constant(operand.integer, known.type, at(span)), type);
  }
  if (drops_address && is_word_as_address(operand))
    return scalar_value(convert(std::move(operand.operands[0]), known.type), type);
  Expression plain;
  plain.kind = ExpressionKind::Convert;
  plain.type = known.type;
  plain.span = at(span);
  plain.operands.push_back(std::move(operand));
  return scalar_value(std::move(plain), type);
}

}  // namespace clew::query
