// SPDX-License-Identifier: Apache-2.0
#include "query/c_arithmetic.h"

#include "base/assert.h"

namespace clew::query {
namespace {

uint64_t divided(BinaryOperator op, uint64_t a, uint64_t b, bool is_signed) {
  const bool is_quotient = op == BinaryOperator::Divide;
  if (b == 0) return is_quotient ? 0 : a;
  if (!is_signed) return is_quotient ? a / b : a % b;
  const auto x = static_cast<int64_t>(a);
  const auto y = static_cast<int64_t>(b);
  if (y == -1) return is_quotient ? 0 - a : 0;
  return static_cast<uint64_t>(is_quotient ? x / y : x % y);
}

bool is_true(BinaryOperator op, uint64_t a, uint64_t b, bool is_signed) {
  if (op == BinaryOperator::LogicalAnd) return a != 0 && b != 0;
  if (op == BinaryOperator::LogicalXor) return (a != 0) != (b != 0);
  if (op == BinaryOperator::LogicalOr) return a != 0 || b != 0;
  return is_signed ? holds(op, static_cast<int64_t>(a), static_cast<int64_t>(b)) : holds(op, a, b);
}

uint64_t wide(BinaryOperator op, uint64_t a, uint64_t b, IntegerType type) {
  const uint64_t count = b & (8U * type.size_bytes - 1);
  switch (op) {
    case BinaryOperator::Multiply:
      return a * b;
    case BinaryOperator::Divide:
    case BinaryOperator::Modulo:
      return divided(op, a, b, type.is_signed);
    case BinaryOperator::Add:
      return a + b;
    case BinaryOperator::Subtract:
      return a - b;
    case BinaryOperator::ShiftLeft:
      return a << count;
    case BinaryOperator::ShiftRight:
      return type.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(a) >> count) : a >> count;
    case BinaryOperator::And:
      return a & b;
    case BinaryOperator::Xor:
      return a ^ b;
    case BinaryOperator::Or:
      return a | b;
    case BinaryOperator::Less:
    case BinaryOperator::LessEqual:
    case BinaryOperator::Greater:
    case BinaryOperator::GreaterEqual:
    case BinaryOperator::Equal:
    case BinaryOperator::NotEqual:
    case BinaryOperator::LogicalAnd:
    case BinaryOperator::LogicalXor:
    case BinaryOperator::LogicalOr:
      return is_true(op, a, b, type.is_signed) ? 1 : 0;
  }
  return 0;
}

}  // namespace

uint64_t wrapped(uint64_t bits, IntegerType type) {
  const uint32_t unused_bits = 64 - 8 * type.size_bytes;
  const uint64_t high = bits << unused_bits;
  if (!type.is_signed) return high >> unused_bits;
  return static_cast<uint64_t>(static_cast<int64_t>(high) >> unused_bits);
}

uint64_t computed(UnaryOperator op, uint64_t operand, IntegerType type) {
  CLEW_ASSERT(is_computed(op));
  if (op == UnaryOperator::Not) return operand == 0 ? 1 : 0;
  if (op == UnaryOperator::Negate) operand = 0 - operand;
  if (op == UnaryOperator::Complement) operand = ~operand;
  return wrapped(operand, type);
}

uint64_t computed(BinaryOperator op, uint64_t a, uint64_t b, IntegerType type) {
  return wrapped(wide(op, a, b, type), type);
}

}  // namespace clew::query
