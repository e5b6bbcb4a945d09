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

bool is_comparison(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::Less:
    case BinaryOperator::LessEqual:
    case BinaryOperator::Greater:
    case BinaryOperator::GreaterEqual:
    case BinaryOperator::Equal:
    case BinaryOperator::NotEqual:
      return true;
    case BinaryOperator::Multiply:
    case BinaryOperator::Divide:
    case BinaryOperator::Modulo:
    case BinaryOperator::Add:
    case BinaryOperator::Subtract:
    case BinaryOperator::ShiftLeft:
    case BinaryOperator::ShiftRight:
    case BinaryOperator::And:
    case BinaryOperator::Xor:
    case BinaryOperator::Or:
    case BinaryOperator::LogicalAnd:
    case BinaryOperator::LogicalOr:
      return false;
  }
  return false;
}

bool is_integer_only(BinaryOperator op) {
  return op == BinaryOperator::Modulo || op == BinaryOperator::ShiftLeft ||
         op == BinaryOperator::ShiftRight || op == BinaryOperator::And ||
         op == BinaryOperator::Or || op == BinaryOperator::Xor ||
         op == BinaryOperator::LogicalAnd || op == BinaryOperator::LogicalOr;
}

// The unit of a result: a difference of times is a duration, a time plus a duration is a time.
Unit result_unit(BinaryOperator op, Unit a, Unit b) {
  const bool is_sum = op == BinaryOperator::Add || op == BinaryOperator::Subtract;
  if (!is_sum) return Unit::None;
  if (a == Unit::Timestamp && b == Unit::Timestamp) {
    return op == BinaryOperator::Subtract ? Unit::Nanoseconds : Unit::None;
  }
  if (a == Unit::Address && b == Unit::Address) return Unit::None;
  for (const Unit unit : {Unit::Timestamp, Unit::Address, Unit::Nanoseconds}) {
    if (a == unit || b == unit) return unit;
  }
  return Unit::None;
}

uint32_t width_bits(const Type& type) {
  return type.size_bytes * 8U;
}

double folded_real(BinaryOperator op, double a, double b) {
  if (op == BinaryOperator::Add) return a + b;
  if (op == BinaryOperator::Subtract) return a - b;
  if (op == BinaryOperator::Multiply) return a * b;
  return a / b;
}

bool compare(BinaryOperator op, auto a, auto b) {
  if (op == BinaryOperator::Less) return a < b;
  if (op == BinaryOperator::LessEqual) return a <= b;
  if (op == BinaryOperator::Greater) return a > b;
  if (op == BinaryOperator::GreaterEqual) return a >= b;
  if (op == BinaryOperator::Equal) return a == b;
  return a != b;
}

bool folded_comparison(BinaryOperator op, const Expression& a, const Expression& b) {
  if (a.kind == ExpressionKind::Float) return compare(op, a.real, b.real);
  if (a.type.is_signed) return compare(op, a.integer, b.integer);
  return compare(op, static_cast<uint64_t>(a.integer), static_cast<uint64_t>(b.integer));
}

Expected<Expression> comparison(const Reporter& report, BinaryOperator op,
                                std::vector<Expression> operands, Span span) {
  Expression& a = operands[0];
  Expression& b = operands[1];
  const bool is_text = a.type.kind == TypeKind::String && b.type.kind == TypeKind::String;
  const bool is_equality = op == BinaryOperator::Equal || op == BinaryOperator::NotEqual;
  const bool is_symbol = is_equality && a.type.kind == TypeKind::Symbol &&
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
    const bool is_and = op == BinaryOperator::LogicalAnd;
    const bool value = is_and ? a.integer != 0 && b.integer != 0 : a.integer != 0 || b.integer != 0;
    return integer_constant(value ? 1 : 0, kInt32, span);
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
  const bool divides = op == BinaryOperator::Divide || op == BinaryOperator::Modulo;
  if (divides && b.kind == ExpressionKind::Integer && b.integer == 0) {
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

Expression integer_constant(int64_t value, Type type, Span span) {
  Expression result = make(ExpressionKind::Integer, type, {}, span);
  result.integer = wrapped(value, type);
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

int64_t wrapped(int64_t value, const Type& type) {
  if (type.size_bytes >= 8) return value;
  const unsigned shift = 64 - width_bits(type);
  const uint64_t high = static_cast<uint64_t>(value) << shift;
  if (!type.is_signed) return static_cast<int64_t>(high >> shift);
  return static_cast<int64_t>(high) >> shift;
}

int64_t folded(BinaryOperator op, int64_t a, int64_t b, const Type& type) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  const uint64_t amount = y & (width_bits(type) - 1);
  uint64_t result = 0;
  switch (op) {
    case BinaryOperator::Multiply:
      result = x * y;
      break;
    case BinaryOperator::Divide:
      // INT64_MIN / -1 wraps, as the accessor does it.
      if (type.is_signed) {
        result = b == -1 ? 0 - x : static_cast<uint64_t>(a / b);
      } else {
        result = x / y;
      }
      break;
    case BinaryOperator::Modulo:
      if (type.is_signed) {
        result = b == -1 ? 0 : static_cast<uint64_t>(a % b);
      } else {
        result = x % y;
      }
      break;
    case BinaryOperator::Add:
      result = x + y;
      break;
    case BinaryOperator::Subtract:
      result = x - y;
      break;
    case BinaryOperator::ShiftLeft:
      result = x << amount;
      break;
    case BinaryOperator::ShiftRight:
      result = type.is_signed ? static_cast<uint64_t>(a >> amount) : x >> amount;
      break;
    case BinaryOperator::And:
      result = x & y;
      break;
    case BinaryOperator::Xor:
      result = x ^ y;
      break;
    case BinaryOperator::Or:
      result = x | y;
      break;
    case BinaryOperator::Less:
    case BinaryOperator::LessEqual:
    case BinaryOperator::Greater:
    case BinaryOperator::GreaterEqual:
    case BinaryOperator::Equal:
    case BinaryOperator::NotEqual:
    case BinaryOperator::LogicalAnd:
    case BinaryOperator::LogicalOr:
      break;
  }
  return wrapped(static_cast<int64_t>(result), type);
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
    const auto bits = static_cast<uint64_t>(operand.integer);
    uint64_t value = operand.integer == 0 ? 1 : 0;
    if (op == UnaryOperator::Negate) value = 0 - bits;
    if (op == UnaryOperator::Complement) value = ~bits;
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
  const bool needs_integers = is_integer_only(op);
  if (needs_integers ? !is_integer(a) || !is_integer(b) : !is_number(a) || !is_number(b)) {
    return report.fail(span, fmt::format("'{}' needs {}, not {} and {}", symbol_of(op),
                                         needs_integers ? "integers" : "numbers", name_of(a.type),
                                         name_of(b.type)));
  }
  const bool is_shift = op == BinaryOperator::ShiftLeft || op == BinaryOperator::ShiftRight;
  const bool is_logical = op == BinaryOperator::LogicalAnd || op == BinaryOperator::LogicalOr;
  if (is_shift) return shift(op, std::move(operands), span);
  if (is_logical) return logical(op, std::move(operands), span);
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
