// SPDX-License-Identifier: Apache-2.0
#include "plan/operation.h"

#include <utility>

#include "base/assert.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using query::BinaryOperator;

Alu alu_of(BinaryOperator op, bool is_signed) {
  if (op == BinaryOperator::ShiftRight) return is_signed ? Alu::ShiftRightSigned : Alu::ShiftRight;
  constexpr std::pair<BinaryOperator, Alu> kRows[] = {{BinaryOperator::Multiply, Alu::Multiply},
                                                      {BinaryOperator::Divide, Alu::Divide},
                                                      {BinaryOperator::Modulo, Alu::Modulo},
                                                      {BinaryOperator::Add, Alu::Add},
                                                      {BinaryOperator::Subtract, Alu::Subtract},
                                                      {BinaryOperator::ShiftLeft, Alu::ShiftLeft},
                                                      {BinaryOperator::And, Alu::And},
                                                      {BinaryOperator::Xor, Alu::Xor},
                                                      {BinaryOperator::Or, Alu::Or}};
  for (const auto& [known, alu] : kRows) {
    if (known == op) return alu;
  }
  CLEW_ASSERT(false);
  return Alu::Move;
}

Jump jump_of(BinaryOperator op, bool is_signed) {
  if (op == BinaryOperator::Equal) return Jump::Equal;
  if (op == BinaryOperator::Less) return is_signed ? Jump::SignedLess : Jump::Less;
  if (op == BinaryOperator::LessEqual) {
    return is_signed ? Jump::SignedLessOrEqual : Jump::LessOrEqual;
  }
  if (op == BinaryOperator::Greater) return is_signed ? Jump::SignedGreater : Jump::Greater;
  if (op == BinaryOperator::GreaterEqual) {
    return is_signed ? Jump::SignedGreaterOrEqual : Jump::GreaterOrEqual;
  }
  CLEW_ASSERT(op == BinaryOperator::NotEqual);
  return Jump::NotEqual;
}

}  // namespace clew::plan
