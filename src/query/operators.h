// SPDX-License-Identifier: Apache-2.0
// The operators of expressions, which queries and D have from C: how they are written, how close
// they bind, and what kind of operands they take. What they compute is in query/c_arithmetic.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace clew::query {

// In the tree of a query Negate, Complement and Not stand alone.
enum class UnaryOperator : uint8_t {
  Plus,
  Negate,
  Complement,
  Not,
  Dereference,
  AddressOf,
  PreIncrement,
  PreDecrement,
  PostIncrement,
  PostDecrement,
};

enum class BinaryOperator : uint8_t {
  Multiply,
  Divide,  // In a query by zero: 0 at the event (the accessors' rule), no value in a column.
  Modulo,
  Add,
  Subtract,
  ShiftLeft,   // In a query the right operand is unsigned 8 bytes, taken modulo the left's width.
  ShiftRight,  // Arithmetic when the left operand is signed.
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,  // Comparisons take two operands of one type, also strings; the result is int32.
  NotEqual,
  And,
  Xor,
  Or,
  LogicalAnd,  // Short-circuit; operands are any integers; the result is int32.
  LogicalXor,  // D's ^^
  LogicalOr,
};

// Higher binds closer.
enum class Precedence : uint8_t {
  Conditional,
  LogicalOr,
  LogicalXor,
  LogicalAnd,
  Or,
  Xor,
  And,
  Equality,
  Comparison,
  Shift,
  Sum,
  Product,
  Unary,
  Primary,
};

// The next one that binds closer.
constexpr Precedence tighter(Precedence precedence) {
  return static_cast<Precedence>(static_cast<uint8_t>(precedence) + 1);
}

std::string_view symbol_of(UnaryOperator op);
std::string_view symbol_of(BinaryOperator op);
// Null when no operator between two operands is written so.
const BinaryOperator* find_binary(std::string_view symbol);

Precedence precedence_of(BinaryOperator op);

// Those whose result is a truth: a comparison, or && ^^ ||.
inline bool is_equality(BinaryOperator op) {
  return precedence_of(op) == Precedence::Equality;
}
inline bool is_comparison(BinaryOperator op) {
  return is_equality(op) || precedence_of(op) == Precedence::Comparison;
}
inline bool is_logical(BinaryOperator op) {
  return precedence_of(op) <= Precedence::LogicalAnd;
}

inline bool is_shift(BinaryOperator op) {
  return precedence_of(op) == Precedence::Shift;
}
inline bool is_sum(BinaryOperator op) {
  return precedence_of(op) == Precedence::Sum;
}
constexpr bool divides(BinaryOperator op) {
  return op == BinaryOperator::Divide || op == BinaryOperator::Modulo;
}

}  // namespace clew::query
