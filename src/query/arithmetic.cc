// SPDX-License-Identifier: Apache-2.0
#include "query/arithmetic.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/fields.h"
#include "query/print.h"

namespace clew::query {
namespace {

Expression make(ExpressionKind kind, Type type, std::vector<Expression> operands, Span span) {
  Expression result;
  result.kind = kind;
  result.type = type;
  result.operands = std::move(operands);
  result.span = span;
  return result;
}

// The unit of a result: a difference of times is a duration, a time plus a duration is a time.
Unit result_unit(BinaryOperator op, Unit a, Unit b) {
  if (!is_sum(op)) return Unit::None;
  if (a == Unit::Timestamp && b == Unit::Timestamp) {
    return op == BinaryOperator::Subtract ? Unit::Nanoseconds : Unit::None;
  }
  if (a == Unit::Address && b == Unit::Address) return Unit::None;
  for (const Unit unit : {Unit::Timestamp, Unit::Address, Unit::Nanoseconds}) {
    if (a == unit || b == unit) return unit;
  }
  return Unit::None;
}

double folded_real(BinaryOperator op, double a, double b) {
  if (op == BinaryOperator::Add) return a + b;
  if (op == BinaryOperator::Subtract) return a - b;
  if (op == BinaryOperator::Multiply) return a * b;
  return a / b;
}

bool folded_comparison(BinaryOperator op, const Expression& a, const Expression& b) {
  if (a.kind == ExpressionKind::Float) return holds(op, a.real, b.real);
  return folded(op, a.integer, b.integer, a.type) != 0;
}

Expected<Expression> comparison(const Reporter& report, BinaryOperator op,
                                std::vector<Expression> operands, Span span) {
  Expression& a = operands[0];
  Expression& b = operands[1];
  const bool is_text = a.type.kind == TypeKind::String && b.type.kind == TypeKind::String;
  const bool is_symbol = is_equality(op) && a.type.kind == TypeKind::Symbol &&
                         (is_integer(b) || b.type.kind == TypeKind::Symbol);
  if (!is_text && !is_symbol && !(is_number(a) && is_number(b))) {
    return report.fail(span,
                       fmt::format("cannot compare {} with {}", name_of(a.type), name_of(b.type)));
  }
  if (is_symbol && is_integer(b)) b = convert(std::move(b), kUint64);
  if (!is_text && !is_symbol) {
    const Type common = common_type(a.type, b.type);
    a = convert(std::move(a), common);
    b = convert(std::move(b), common);
    const bool is_folded = is_constant(a) && is_constant(b);
    if (is_folded) return integer_constant(folded_comparison(op, a, b) ? 1 : 0, kInt32, span);
  }
  Expression result = make(ExpressionKind::Binary, kInt32, std::move(operands), span);
  result.binary = op;
  return result;
}

Expected<Expression> shift(BinaryOperator op, std::vector<Expression> operands, Span span) {
  Expression& a = operands[0];
  Expression& b = operands[1];
  const Type type = promoted(a.type);
  a = convert(std::move(a), type);
  b = convert(std::move(b), kUint64);
  if (is_constant(a) && is_constant(b)) {
    return integer_constant(folded(op, a.integer, b.integer, type), type, span);
  }
  Expression result = make(ExpressionKind::Binary, type, std::move(operands), span);
  result.binary = op;
  return result;
}

Expected<Expression> logical(BinaryOperator op, std::vector<Expression> operands, Span span) {
  const Expression& a = operands[0];
  const Expression& b = operands[1];
  if (is_constant(a) && is_constant(b)) {
    return integer_constant(folded(op, a.integer, b.integer, kInt64), kInt32, span);
  }
  Expression result = make(ExpressionKind::Binary, kInt32, std::move(operands), span);
  result.binary = op;
  return result;
}

Expected<Expression> arithmetic(const Reporter& report, BinaryOperator op,
                                std::vector<Expression> operands, Span span) {
  Expression& a = operands[0];
  Expression& b = operands[1];
  Type type = common_type(a.type, b.type);
  const Unit unit = result_unit(op, a.type.unit, b.type.unit);
  a = convert(std::move(a), type);
  b = convert(std::move(b), type);
  if (divides(op) && b.kind == ExpressionKind::Integer && b.integer == 0) {
    return report.fail(b.span, "division by zero");
  }
  const bool is_real = type.kind == TypeKind::Float;
  type.unit = unit;
  if (is_constant(a) && is_constant(b)) {
    if (is_real) return float_constant(folded_real(op, a.real, b.real), span);
    return integer_constant(folded(op, a.integer, b.integer, type), type, span);
  }
  Expression result = make(ExpressionKind::Binary, type, std::move(operands), span);
  result.binary = op;
  return result;
}

}  // namespace

// --- leaves --------------------------------------------------------------------------------------

Type string_type(size_t capacity_bytes) {
  CLEW_ASSERT(capacity_bytes <= std::numeric_limits<uint16_t>::max());
  return {.kind = TypeKind::String,
          .size_bytes = 0,
          .is_signed = false,
          .capacity_bytes = static_cast<uint16_t>(capacity_bytes)};
}

bool same_representation(const Type& a, const Type& b) {
  return a.kind == b.kind && a.size_bytes == b.size_bytes && a.is_signed == b.is_signed;
}

bool is_integer(const Expression& expression) {
  return expression.type.kind == TypeKind::Integer;
}

bool is_number(const Expression& expression) {
  return is_integer(expression) || expression.type.kind == TypeKind::Float;
}

bool is_constant(const Expression& expression) {
  return expression.kind == ExpressionKind::Integer || expression.kind == ExpressionKind::Float ||
         expression.kind == ExpressionKind::String;
}

bool reads_memory(const Expression& node) {
  return node.kind == ExpressionKind::Load || node.kind == ExpressionKind::ReadString ||
         node.kind == ExpressionKind::ReadBytes;
}

Expression integer_constant(int64_t value, Type type, Span span) {
  Expression result = make(ExpressionKind::Integer, type, {}, span);
  result.integer = static_cast<int64_t>(wrapped(static_cast<uint64_t>(value), integer_type(type)));
  return result;
}

Expression float_constant(double value, Span span) {
  Expression result = make(ExpressionKind::Float, kFloat64, {}, span);
  result.real = value;
  return result;
}

Expression string_constant(std::string text, Span span) {
  Expression result = make(ExpressionKind::String, string_type(text.size() + 1), {}, span);
  result.text = std::move(text);
  return result;
}

Expression field_expression(Field field, uint16_t index, uint16_t stream, Span span) {
  Expression result = make(ExpressionKind::Field, info(field).type, {}, span);
  result.field = field;
  result.index = index;
  result.stream = stream;
  return result;
}

Expression call(Function function, Type type, std::vector<Expression> operands, Span span) {
  Expression result = make(ExpressionKind::Call, type, std::move(operands), span);
  result.function = function;
  return result;
}

// --- conversions ---------------------------------------------------------------------------------

int64_t folded(BinaryOperator op, int64_t a, int64_t b, const Type& type) {
  return static_cast<int64_t>(
      computed(op, static_cast<uint64_t>(a), static_cast<uint64_t>(b), integer_type(type)));
}

Type promoted(Type type) {
  type.enumeration = 0;
  if (type.kind == TypeKind::Integer && type.size_bytes < 4) {
    type.size_bytes = 4;
    type.is_signed = true;
  }
  return type;
}

Type common_type(const Type& a, const Type& b) {
  if (a.kind == TypeKind::Float || b.kind == TypeKind::Float) return kFloat64;
  const Type x = promoted(a);
  const Type y = promoted(b);
  Type result = x.size_bytes >= y.size_bytes ? x : y;
  if (x.size_bytes == y.size_bytes) result.is_signed = x.is_signed && y.is_signed;
  result.unit = Unit::None;
  return result;
}

bool is_word_as_address(const Expression& expression) {
  return expression.kind == ExpressionKind::Convert && expression.type.unit == Unit::Address &&
         expression.operands[0].type.kind == TypeKind::Integer &&
         expression.operands[0].type.size_bytes == 8;
}

Expression convert(Expression expression, Type type) {
  CLEW_ASSERT(is_number(expression));
  const bool keeps_unit = type.unit == Unit::None && expression.type.unit != Unit::Address;
  if (keeps_unit) type.unit = expression.type.unit;
  const bool is_same = same_representation(expression.type, type);
  if (is_same && (type.unit == expression.type.unit || type.unit == Unit::None) &&
      type.enumeration == 0) {
    return expression;
  }
  if (expression.type == type) return expression;
  const Span span = expression.span;
  if (expression.kind == ExpressionKind::Integer && type.kind == TypeKind::Integer) {
    return integer_constant(expression.integer, type, span);
  }
  if (expression.kind == ExpressionKind::Integer && type == kFloat64) {
    const double real = expression.type.is_signed
                            ? static_cast<double>(expression.integer)
                            : static_cast<double>(static_cast<uint64_t>(expression.integer));
    return float_constant(real, span);
  }
  return make(ExpressionKind::Convert, type, {std::move(expression)}, span);
}

// --- operators -----------------------------------------------------------------------------------

Expected<Expression> make_unary(const Reporter& report, UnaryOperator op, Expression operand,
                                Span span) {
  const bool is_real_negation = op == UnaryOperator::Negate && operand.type.kind == TypeKind::Float;
  if (!is_integer(operand) && !is_real_negation) {
    return report.fail(span, fmt::format("'{}' needs {}, not {}", symbol_of(op),
                                         op == UnaryOperator::Negate ? "a number" : "an integer",
                                         name_of(operand.type)));
  }
  Type type = op == UnaryOperator::Not ? kInt32 : promoted(operand.type);
  if (is_real_negation) type = kFloat64;
  if (op != UnaryOperator::Not) {
    operand = convert(std::move(operand), type);
    type.unit = operand.type.unit == Unit::Nanoseconds ? Unit::Nanoseconds : Unit::None;
  }
  if (operand.kind == ExpressionKind::Float) return float_constant(-operand.real, span);
  if (operand.kind == ExpressionKind::Integer) {
    const uint64_t value = computed(op, static_cast<uint64_t>(operand.integer), integer_type(type));
    return integer_constant(static_cast<int64_t>(value), type, span);
  }
  Expression result = make(ExpressionKind::Unary, type, {std::move(operand)}, span);
  result.unary = op;
  return result;
}

Expected<Expression> make_binary(const Reporter& report, BinaryOperator op,
                                 std::vector<Expression> operands, Span span) {
  CLEW_ASSERT(operands.size() == 2);
  if (is_comparison(op)) return comparison(report, op, std::move(operands), span);
  const Expression& a = operands[0];
  const Expression& b = operands[1];
  const bool needs_integers = op == BinaryOperator::Modulo || precedence_of(op) < Precedence::Sum;
  if (needs_integers ? !is_integer(a) || !is_integer(b) : !is_number(a) || !is_number(b)) {
    return report.fail(span, fmt::format("'{}' needs {}, not {} and {}", symbol_of(op),
                                         needs_integers ? "integers" : "numbers", name_of(a.type),
                                         name_of(b.type)));
  }
  if (is_shift(op)) return shift(op, std::move(operands), span);
  if (is_logical(op)) return logical(op, std::move(operands), span);
  return arithmetic(report, op, std::move(operands), span);
}

Expected<Expression> make_conditional(const Reporter& report, std::vector<Expression> operands,
                                      Span span) {
  CLEW_ASSERT(operands.size() == 3);
  Expression& yes = operands[1];
  Expression& no = operands[2];
  if (!is_integer(operands[0])) {
    return report.fail(operands[0].span, fmt::format("the condition of '?' is an integer, not {}",
                                                     name_of(operands[0].type)));
  }
  Type type = yes.type;
  if (is_number(yes) && is_number(no)) {
    type = common_type(yes.type, no.type);
    yes = convert(std::move(yes), type);
    no = convert(std::move(no), type);
    if (yes.type.unit == no.type.unit) type.unit = yes.type.unit;
  } else if (yes.type.kind != no.type.kind || yes.type.kind == TypeKind::Stack) {
    return report.fail(span, fmt::format("'?' cannot choose between {} and {}", name_of(yes.type),
                                         name_of(no.type)));
  }
  type.capacity_bytes = std::max(yes.type.capacity_bytes, no.type.capacity_bytes);
  return make(ExpressionKind::Conditional, type, std::move(operands), span);
}

}  // namespace clew::query
