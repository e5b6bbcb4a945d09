// SPDX-License-Identifier: Apache-2.0
#include "plan/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "aggregate/hash.h"
#include "aggregate/table.h"

namespace clew::plan {

using aggregate::Value;
using query::BinaryOperator;
using query::Expression;
using query::ExpressionKind;
using query::Type;
using query::TypeKind;

namespace {

bool is_null(const Value& value) {
  return std::holds_alternative<std::monostate>(value);
}

double real_of(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<uint64_t>(&value)) return static_cast<double>(*u);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return 0;
}

// `bits` as a value of an integer type.
Value integer_value(uint64_t bits, const Type& type) {
  const unsigned width = type.kind == TypeKind::Integer ? 8U * type.size_bytes : 64U;
  const unsigned unused = 64 - width;
  if (type.kind == TypeKind::Integer && type.is_signed) {
    return static_cast<int64_t>(bits << unused) >> unused;
  }
  return bits << unused >> unused;
}

Value truth_value(bool truth) {
  return static_cast<int64_t>(truth ? 1 : 0);
}

// C's conversion; a floating-point value out of range is clamped.
Value convert(const Value& value, const Type& type) {
  if (is_null(value)) return value;
  if (type.kind == TypeKind::Float) {
    const double real = real_of(value);
    return type.size_bytes == 4 ? static_cast<double>(static_cast<float>(real)) : real;
  }
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return integer_value(bits_of(value), type);
  return integer_value(bits_of(Value(*real)), type);
}

Value shift(const Expression& e, uint64_t left, uint64_t right) {
  const uint64_t count = right & (8U * e.type.size_bytes - 1);
  if (e.binary == BinaryOperator::ShiftLeft) return integer_value(left << count, e.type);
  if (e.type.is_signed) {
    return integer_value(static_cast<uint64_t>(static_cast<int64_t>(left) >> count), e.type);
  }
  return integer_value(left >> count, e.type);
}

Value divide(const Expression& e, uint64_t left, uint64_t right) {
  const bool quotient = e.binary == BinaryOperator::Divide;
  if (right == 0) return integer_value(quotient ? 0 : left, e.type);
  if (!e.type.is_signed) return integer_value(quotient ? left / right : left % right, e.type);
  const auto a = static_cast<int64_t>(left);
  const auto b = static_cast<int64_t>(right);
  if (b == -1) return integer_value(quotient ? 0 - left : 0, e.type);
  return integer_value(static_cast<uint64_t>(quotient ? a / b : a % b), e.type);
}

Value integer_arithmetic(const Expression& e, uint64_t left, uint64_t right) {
  switch (e.binary) {
    case BinaryOperator::Multiply:
      return integer_value(left * right, e.type);
    case BinaryOperator::Add:
      return integer_value(left + right, e.type);
    case BinaryOperator::Subtract:
      return integer_value(left - right, e.type);
    case BinaryOperator::And:
      return integer_value(left & right, e.type);
    case BinaryOperator::Xor:
      return integer_value(left ^ right, e.type);
    case BinaryOperator::Or:
      return integer_value(left | right, e.type);
    case BinaryOperator::ShiftLeft:
    case BinaryOperator::ShiftRight:
      return shift(e, left, right);
    case BinaryOperator::Divide:
    case BinaryOperator::Modulo:
      return divide(e, left, right);
    case BinaryOperator::Less:
    case BinaryOperator::LessEqual:
    case BinaryOperator::Greater:
    case BinaryOperator::GreaterEqual:
    case BinaryOperator::Equal:
    case BinaryOperator::NotEqual:
    case BinaryOperator::LogicalAnd:
    case BinaryOperator::LogicalOr:
      return {};
  }
  return {};
}

Value real_arithmetic(const Expression& e, double left, double right) {
  switch (e.binary) {
    case BinaryOperator::Multiply:
      return left * right;
    case BinaryOperator::Add:
      return left + right;
    case BinaryOperator::Subtract:
      return left - right;
    case BinaryOperator::Divide:
      return right == 0 ? Value() : Value(left / right);
    case BinaryOperator::Modulo:
      return right == 0 ? Value() : Value(std::fmod(left, right));
    case BinaryOperator::ShiftLeft:
    case BinaryOperator::ShiftRight:
    case BinaryOperator::Less:
    case BinaryOperator::LessEqual:
    case BinaryOperator::Greater:
    case BinaryOperator::GreaterEqual:
    case BinaryOperator::Equal:
    case BinaryOperator::NotEqual:
    case BinaryOperator::And:
    case BinaryOperator::Xor:
    case BinaryOperator::Or:
    case BinaryOperator::LogicalAnd:
    case BinaryOperator::LogicalOr:
      return {};
  }
  return {};
}

bool compares(BinaryOperator op, int order) {
  switch (op) {
    case BinaryOperator::Less:
      return order < 0;
    case BinaryOperator::LessEqual:
      return order <= 0;
    case BinaryOperator::Greater:
      return order > 0;
    case BinaryOperator::GreaterEqual:
      return order >= 0;
    case BinaryOperator::Equal:
      return order == 0;
    case BinaryOperator::NotEqual:
      return order != 0;
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
  return {};
}

bool is_comparison(BinaryOperator op) {
  return op == BinaryOperator::Less || op == BinaryOperator::LessEqual ||
         op == BinaryOperator::Greater || op == BinaryOperator::GreaterEqual ||
         op == BinaryOperator::Equal || op == BinaryOperator::NotEqual;
}

// No number compares with anything (IEEE 754).
bool is_nan(const Value& value) {
  const auto* real = std::get_if<double>(&value);
  return real != nullptr && std::isnan(*real);
}

Value binary(const Expression& e, Bindings& bindings) {
  const Value left = evaluate(e.operands[0], bindings);
  if (e.binary == BinaryOperator::LogicalAnd) {
    return truth_value(is_true(left) && is_true(evaluate(e.operands[1], bindings)));
  }
  if (e.binary == BinaryOperator::LogicalOr) {
    return truth_value(is_true(left) || is_true(evaluate(e.operands[1], bindings)));
  }
  const Value right = evaluate(e.operands[1], bindings);
  if (is_null(left) || is_null(right)) return {};
  if (is_comparison(e.binary)) {
    if (is_nan(left) || is_nan(right)) return truth_value(e.binary == BinaryOperator::NotEqual);
    return truth_value(compares(e.binary, aggregate::compare(left, right)));
  }
  if (e.type.kind == TypeKind::Float) return real_arithmetic(e, real_of(left), real_of(right));
  return integer_arithmetic(e, bits_of(left), bits_of(right));
}

Value unary(const Expression& e, Bindings& bindings) {
  Value operand = evaluate(e.operands[0], bindings);
  if (is_null(operand)) return operand;
  switch (e.unary) {
    case query::UnaryOperator::Negate:
      if (e.type.kind == TypeKind::Float) return -real_of(operand);
      return integer_value(0 - bits_of(operand), e.type);
    case query::UnaryOperator::Complement:
      return integer_value(~bits_of(operand), e.type);
    case query::UnaryOperator::Not:
      return truth_value(!is_true(operand));
  }
  return {};
}

std::string text_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

Value absolute(const Expression& e, const Value& operand) {
  if (e.type.kind == TypeKind::Float) return std::fabs(real_of(operand));
  const auto* number = std::get_if<int64_t>(&operand);
  if (number == nullptr || *number >= 0) return operand;
  return integer_value(0 - static_cast<uint64_t>(*number), e.type);
}

Value substring(const std::vector<Value>& operands) {
  const std::string text = text_of(operands[0]);
  const uint64_t first = bits_of(operands[1]);
  return first >= text.size() ? std::string() : text.substr(first, bits_of(operands[2]));
}

Value call(const Expression& e, Bindings& bindings) {
  using query::Function;
  std::vector<Value> operands;
  for (const Expression& operand : e.operands) {
    operands.push_back(evaluate(operand, bindings));
    if (is_null(operands.back())) return {};
  }
  switch (e.function) {
    case Function::Log2: {
      const uint64_t bits = bits_of(operands[0]);
      return static_cast<int64_t>(bits == 0 ? 0 : std::bit_width(bits) - 1);
    }
    case Function::Min:
      return aggregate::compare(operands[0], operands[1]) <= 0 ? operands[0] : operands[1];
    case Function::Max:
      return aggregate::compare(operands[0], operands[1]) >= 0 ? operands[0] : operands[1];
    case Function::Abs:
      return absolute(e, operands[0]);
    case Function::Hash:
      return hash_of_value(operands[0], e.operands[0].type);
    case Function::Len:
      return static_cast<uint64_t>(text_of(operands[0]).size());
    case Function::Substr:
      return substring(operands);
    case Function::Contains:
      return truth_value(text_of(operands[0]).find(text_of(operands[1])) != std::string::npos);
    case Function::StartsWith:
      return truth_value(text_of(operands[0]).starts_with(text_of(operands[1])));
    case Function::Like:
      return truth_value(matches_like(text_of(operands[0]), text_of(operands[1])));
    case Function::Hex:
      return fmt::format("0x{:x}", bits_of(operands[0]));
    case Function::Sample:
    case Function::Extension:
      break;
  }
  return {};
}

Value membership(const Expression& e, Bindings& bindings) {
  const Value needle = evaluate(e.operands[0], bindings);
  if (is_null(needle)) return {};
  return truth_value(
      std::any_of(e.operands.begin() + 1, e.operands.end(), [&](const Expression& candidate) {
        return aggregate::compare(needle, evaluate(candidate, bindings)) == 0;
      }));
}

}  // namespace

bool is_true(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real != 0;
  return bits_of(value) != 0;
}

bool are_true(const std::vector<Expression>& conditions, Bindings& bindings) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&bindings](const Expression& e) { return is_true(evaluate(e, bindings)); });
}

uint64_t bits_of(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<uint64_t>(*i);
  if (const auto* u = std::get_if<uint64_t>(&value)) return *u;
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr || std::isnan(*real)) return 0;
  constexpr double kLow = -9223372036854775808.0;
  constexpr double kHigh = 18446744073709551615.0;
  if (*real <= kLow) return static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
  if (*real >= kHigh) return std::numeric_limits<uint64_t>::max();
  return *real < 0 ? static_cast<uint64_t>(static_cast<int64_t>(*real))
                   : static_cast<uint64_t>(*real);
}

uint64_t hash_of_value(const Value& value, const Type& type) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return aggregate::hash_step(aggregate::kHashSeed, bits_of(value));
  std::vector<uint64_t> words((type.capacity_bytes + 7U) / 8U);
  std::memcpy(words.data(), text->data(), std::min(text->size(), words.size() * 8));
  return aggregate::hash_words(words);
}

bool matches_like(std::string_view text, std::string_view pattern) {
  // Positions to return to after the last %: try to let it take one byte more.
  size_t t = 0;
  size_t p = 0;
  size_t retry_text = 0;
  size_t retry_pattern = std::string_view::npos;
  while (t < text.size()) {
    const bool escaped = p + 1 < pattern.size() && pattern[p] == '\\';
    if (p < pattern.size() && pattern[p] == '%') {
      retry_pattern = ++p;
      retry_text = t;
    } else if (p < pattern.size() &&
               (escaped ? pattern[p + 1] == text[t] : pattern[p] == '_' || pattern[p] == text[t])) {
      p += escaped ? 2 : 1;
      ++t;
    } else if (retry_pattern != std::string_view::npos) {
      p = retry_pattern;
      t = ++retry_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('%', p) == std::string_view::npos;
}

Value evaluate(const Expression& e, Bindings& bindings) {
  switch (e.kind) {
    case ExpressionKind::Integer:
      return integer_value(static_cast<uint64_t>(e.integer), e.type);
    case ExpressionKind::Float:
      return e.real;
    case ExpressionKind::String:
      return e.text;
    case ExpressionKind::Field:
      return bindings.field(e);
    case ExpressionKind::Input:
      return bindings.input(e.index);
    case ExpressionKind::Let:
      return bindings.let(e.index);
    case ExpressionKind::Value:
      return bindings.value(e.index);
    case ExpressionKind::Aggregate:
      return bindings.aggregate(e.index);
    case ExpressionKind::JoinColumn:
      return {};
    case ExpressionKind::Unary:
      return unary(e, bindings);
    case ExpressionKind::Binary:
      return binary(e, bindings);
    case ExpressionKind::Conditional: {
      const Value condition = evaluate(e.operands[0], bindings);
      return evaluate(e.operands[is_true(condition) ? 1 : 2], bindings);
    }
    case ExpressionKind::Convert:
      return convert(evaluate(e.operands[0], bindings), e.type);
    case ExpressionKind::Load:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes: {
      const Value address = evaluate(e.operands[0], bindings);
      return is_null(address) ? address : bindings.memory(e, bits_of(address));
    }
    case ExpressionKind::Call:
      return call(e, bindings);
    case ExpressionKind::In:
      return membership(e, bindings);
  }
  return {};
}

}  // namespace clew::plan
