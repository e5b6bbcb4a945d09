// SPDX-License-Identifier: Apache-2.0
// Coder: stacks that the probe itself walks: from the function's caller on, or within a function
// from the place of the probe.
#include "abi/accessor.h"
#include "abi/query_window.h"
#include "plan/coder.h"
#include "plan/coder_parts.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Register;
using isa::Size;
using query::Expression;
using query::ExpressionKind;

const Expression& meaning_of(const query::Query& query, const query::Source& source,
                             const Expression& expression) {
  if (expression.kind == ExpressionKind::Let) {
    return meaning_of(query, source, query.lets[expression.index].expression);
  }
  if (expression.kind == ExpressionKind::Input) {
    return meaning_of(query, source, source.inputs[expression.index]);
  }
  return expression;
}

void Coder::walk_within(const Expression& stack, Register base, int32_t offset) {
  load_site(Register::R3, SiteConstant::SiteAddress);
  builder_.move(Register::R1, base)
      .alu(Alu::Add, Register::R1, offset)
      .move(Register::R2, static_cast<int32_t>(frames_of(stack)))
      .load(Size::Double, Register::R4, kContext, offsetof(abi::Context, base_pointer))
      .call(abi::Accessor::WalkWithin)
      .jump_if(Jump::Equal, Register::R0, 0, unreadable());
}

// At an entry the function itself stands in front of its caller, where the accessor has put the
// pid.
void Coder::store_stack(const Expression& stack, Register base, int32_t offset) {
  const bool knows_caller =
      source_->kind == query::SourceKind::Entry || source_->kind == query::SourceKind::Return;
  if (landing_) return walk_left(stack, base, offset);
  if (!knows_caller) return walk_within(stack, base, offset);
  const bool has_own_frame = source_->kind == query::SourceKind::Entry;
  const auto frames = static_cast<int32_t>(frames_of(stack)) - (has_own_frame ? 1 : 0);
  builder_.move(Register::R1, base)
      .alu(Alu::Add, Register::R1, offset + (has_own_frame ? 8 : 0))
      .move(Register::R2, frames)
      .load(Size::Double, Register::R3, kContext, offsetof(abi::Context, frame))
      .load(Size::Double, Register::R4, kContext, offsetof(abi::Context, base_pointer))
      .load(Size::Double, Register::R5, kContext, offsetof(abi::Context, rbx))
      .call(abi::Accessor::WalkStack)
      .jump_if(Jump::Equal, Register::R0, 0, unreadable());
  if (!has_own_frame) return;
  builder_.load(Size::Double, Register::R1, base, offset + 8)
      .store(Size::Double, base, offset, Register::R1);
  load_site(Register::R1, SiteConstant::SiteAddress);
  builder_.store(Size::Double, base, offset + 8, Register::R1);
}

}  // namespace clew::plan
