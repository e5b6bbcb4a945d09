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
#include "plan/shown_text.h"
#include "query/arithmetic.h"

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
  if (type.kind != TypeKind::Integer) return bits;
  bits = wrapped(bits, query::integer_type(type));
  return type.is_signed ? Value(static_cast<int64_t>(bits)) : Value(bits);
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

Value real_arithmetic(const Expression& e, double left, double right) {
  if (e.binary == BinaryOperator::Multiply) return left * right;
  if (e.binary == BinaryOperator::Add) return left + right;
  if (e.binary == BinaryOperator::Subtract) return left - right;
  if (!query::divides(e.binary) || right == 0) return {};
  return e.binary == BinaryOperator::Divide ? left / right : std::fmod(left, right);
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
  if (query::is_comparison(e.binary)) {
    if (is_nan(left) || is_nan(right)) return truth_value(e.binary == BinaryOperator::NotEqual);
    return truth_value(query::holds(e.binary, aggregate::compare(left, right), 0));
  }
  if (e.type.kind == TypeKind::Float) return real_arithmetic(e, real_of(left), real_of(right));
  return integer_value(
      computed(e.binary, bits_of(left), bits_of(right), query::integer_type(e.type)), e.type);
}

Value unary(const Expression& e, Bindings& bindings) {
  Value operand = evaluate(e.operands[0], bindings);
  if (is_null(operand)) return operand;
  if (e.unary == query::UnaryOperator::Not) return truth_value(!is_true(operand));
  if (e.type.kind == TypeKind::Float) return -real_of(operand);
  return integer_value(computed(e.unary, bits_of(operand), query::integer_type(e.type)), e.type);
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

bool is_text(const Value& value) {
  return std::holds_alternative<std::string>(value);
}

// Of a length below zero nothing.
std::string cut(std::string bytes, const Value& length) {
  const auto* number = std::get_if<int64_t>(&length);
  const uint64_t wanted = number != nullptr && *number < 0 ? 0 : bits_of(length);
  if (wanted < bytes.size()) bytes.resize(wanted);
  return bytes;
}

Value call(const Expression& e, Bindings& bindings) {
  using query::Function;
  if (e.function == Function::IsNothing)
    return truth_value(is_null(evaluate(e.operands[0], bindings)));
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
    case Function::Before: {
      const std::string text = text_of(operands[0]);
      return text.substr(0, text.find(text_of(operands[1])));
    }
    case Function::Contains:
      return truth_value(text_of(operands[0]).find(text_of(operands[1])) != std::string::npos);
    case Function::StartsWith:
      return truth_value(text_of(operands[0]).starts_with(text_of(operands[1])));
    case Function::Like:
      return truth_value(matches_like(text_of(operands[0]), text_of(operands[1])));
    case Function::Hex:
      if (is_text(operands[0])) return hex_digits(text_of(operands[0]));
      return fmt::format("0x{:x}", bits_of(operands[0]));
    case Function::Cut:
      return cut(text_of(operands[0]), operands[1]);
    case Function::WideText:
      return wide_text(text_of(operands[0]), e.index);
    case Function::Address:
      if (is_text(operands[0])) return address_text(text_of(operands[0]));
      return address_text(static_cast<uint32_t>(bits_of(operands[0])));
    case Function::SocketAddress:
      return socket_address_text(text_of(operands[0]), text_of(operands[1]));
    case Function::Print:
      return operands[0];
    case Function::Sample:
    case Function::IsNothing:
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
      Value address = evaluate(e.operands[0], bindings);
      if (is_null(address)) return address;
      Value read = bindings.memory(e, bits_of(address));
      return e.operands.size() == 1 ? read : cut(text_of(read), evaluate(e.operands[1], bindings));
    }
    case ExpressionKind::Call:
      return call(e, bindings);
    case ExpressionKind::In:
      return membership(e, bindings);
  }
  return {};
}

}  // namespace clew::plan
