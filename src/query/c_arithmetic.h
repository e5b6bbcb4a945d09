// SPDX-License-Identifier: Apache-2.0
// What C's operators compute with integers, in one place for all that knows operands before, or
// behind, the probe. A value is held in 64 bits, sign- or zero-extended from the width of its type.
#pragma once

#include <cstdint>

#include "query/operators.h"

namespace clew::query {

// What arithmetic asks of an integer type.
struct IntegerType {
  uint32_t size_bytes = 8;  // 1 to 8
  bool is_signed = true;
};

// The low bytes of `bits`, extended as a value of the type is held.
uint64_t wrapped(uint64_t bits, IntegerType type);

// +a, -a, ~a or !a; other operators compute nothing.
constexpr bool is_computed(UnaryOperator op) {
  return op <= UnaryOperator::Not;
}
uint64_t computed(UnaryOperator op, uint64_t operand, IntegerType type);

// a op b. Operands are of the type, and so is the result; a truth is 0 or 1. The right operand of a
// shift counts modulo the width. What divides by zero is 0, and leaves `a` as the rest; the
// quotient of the smallest number and -1 wraps.
uint64_t computed(BinaryOperator op, uint64_t a, uint64_t b, IntegerType type);

// Of values that can be ordered: 64-bit integers, floating-point numbers.
template <typename Number>
bool holds(BinaryOperator op, Number a, Number b) {
  if (op == BinaryOperator::Less) return a < b;
  if (op == BinaryOperator::LessEqual) return a <= b;
  if (op == BinaryOperator::Greater) return a > b;
  if (op == BinaryOperator::GreaterEqual) return a >= b;
  if (op == BinaryOperator::Equal) return a == b;
  return a != b;
}

}  // namespace clew::query
