// SPDX-License-Identifier: Apache-2.0
// Conditions: jumps that depend on an expression, and values that depend on a condition.
#include <algorithm>

#include "plan/coder.h"
#include "plan/coder_parts.h"
#include "plan/operation.h"

namespace clew::plan {

using isa::Jump;
using isa::Label;
using isa::Register;
using query::Expression;
using query::ExpressionKind;

Expected<void> Coder::conditional(const Expression& expression) {
  const Label otherwise = builder_.label();
  const Label done = builder_.label();
  CLEW_TRY(branch(expression.operands[0], false, otherwise));
  CLEW_TRY(integer(expression.operands[1]));
  builder_.jump(done).bind(otherwise);
  CLEW_TRY(integer(expression.operands[2]));
  builder_.bind(done);
  return {};
}

Expected<void> Coder::truth(const Expression& expression) {
  const Label no = builder_.label();
  const Label done = builder_.label();
  CLEW_TRY(branch(expression, false, no));
  builder_.move(Register::R0, 1).jump(done).bind(no).move(Register::R0, 0).bind(done);
  return {};
}

Expected<void> Coder::branch(const Expression& expression, bool when, Label target) {
  if (expression.kind == ExpressionKind::Unary && expression.unary == query::UnaryOperator::Not) {
    return branch(expression.operands[0], !when, target);
  }
  if (expression.kind == ExpressionKind::In) return branch_in(expression, when, target);
  if (expression.kind == ExpressionKind::Call &&
      expression.function == query::Function::StartsWith) {
    return branch_text(expression, when, target);
  }
  if (expression.kind == ExpressionKind::Binary) {
    if (query::is_logical(expression.binary)) return branch_logical(expression, when, target);
    if (query::is_comparison(expression.binary)) {
      return is_text(expression.operands[0].type) ? branch_text(expression, when, target)
                                                  : branch_compare(expression, when, target);
    }
  }
  CLEW_TRY(integer(expression));
  builder_.jump_if(when ? Jump::NotEqual : Jump::Equal, Register::R0, 0, target);
  return {};
}

Expected<void> Coder::branch_logical(const Expression& expression, bool when, Label target) {
  // An `and` is false as soon as one operand is; an `or` is true as soon as one is.
  const bool short_cut = expression.binary == query::BinaryOperator::LogicalOr;
  if (when == short_cut) {
    CLEW_TRY(branch(expression.operands[0], when, target));
    return branch(expression.operands[1], when, target);
  }
  const Label decided = builder_.label();
  CLEW_TRY(branch(expression.operands[0], short_cut, decided));
  CLEW_TRY(branch(expression.operands[1], when, target));
  builder_.bind(decided);
  return {};
}

Expected<void> Coder::branch_compare(const Expression& expression, bool when, Label target) {
  const Expression& right = expression.operands[1];
  const bool is_signed = expression.operands[0].type.is_signed;
  Jump jump = jump_of(expression.binary, is_signed);
  if (!when) jump = isa::opposite(jump);
  // The immediate of a comparison is sign-extended, whatever the comparison.
  if (right.kind == ExpressionKind::Integer && fits_immediate(right.integer)) {
    CLEW_TRY(integer(expression.operands[0]));
    builder_.jump_if(jump, Register::R0, static_cast<int32_t>(right.integer), target);
    return {};
  }
  CLEW_TRY(operands(expression.operands[0], right));
  builder_.jump_if(jump, Register::R0, Register::R2, target);
  return {};
}

Expected<void> Coder::branch_in(const Expression& expression, bool when, Label target) {
  const Expression& needle = expression.operands[0];
  const Label found = when ? target : builder_.label();
  const int32_t mark = frame_used_;
  if (is_text(needle.type)) {
    size_t longest = 0;
    for (size_t i = 1; i < expression.operands.size(); ++i)
      longest = std::max(longest, expression.operands[i].text.size());
    const Expression text = as_compared(needle, longest);
    const int32_t area = CLEW_TRY(text_in_frame(text));
    for (size_t i = 1; i < expression.operands.size(); ++i) {
      test_text({.left = area,
                 .capacity = 8 * stored_words(text),
                 .right = expression.operands[i].text,
                 .prefix = false,
                 .zero_padded = text.type.kind == query::TypeKind::String},
                true, found);
    }
  } else {
    CLEW_TRY(integer(needle));
    for (size_t i = 1; i < expression.operands.size(); ++i) {
      const int64_t candidate = expression.operands[i].integer;
      if (fits_immediate(candidate)) {
        builder_.jump_if(Jump::Equal, Register::R0, static_cast<int32_t>(candidate), found);
        continue;
      }
      builder_.load_constant(Register::R2, static_cast<uint64_t>(candidate))
          .jump_if(Jump::Equal, Register::R0, Register::R2, found);
    }
  }
  release(mark);
  if (!when) builder_.jump(target).bind(found);
  return {};
}

Expected<void> Coder::choose_extreme(const Expression& expression) {
  CLEW_TRY(operands(expression.operands[0], expression.operands[1]));
  const bool smaller = expression.function == query::Function::Min;
  const Label done = builder_.label();
  const auto op = smaller ? query::BinaryOperator::LessEqual : query::BinaryOperator::GreaterEqual;
  builder_.jump_if(jump_of(op, expression.type.is_signed), Register::R0, Register::R2, done)
      .move(Register::R0, Register::R2)
      .bind(done);
  return {};
}

}  // namespace clew::plan
