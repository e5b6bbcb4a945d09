// SPDX-License-Identifier: Apache-2.0
// Updates of aggregations in words of the thread's own (CellClause).
#include "abi/buckets.h"
#include "base/assert.h"
#include "plan/d/clause_coder.h"

namespace clew::plan::d {

using abi::AggregateFunction;
using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Size;
using query::d::Builtin;
using query::d::FieldKind;
using query::d::Node;
using query::d::NodeKind;
using query::d::StoredForm;

namespace {

constexpr auto kZeroBucket = static_cast<int32_t>(abi::kQuantizeZero);
constexpr uint64_t kNumberMax = 0x7FFF'FFFF;

// Cells that are sums: differences of them mean something.
bool has_sums(AggregateFunction kind) {
  return kind == AggregateFunction::Count || kind == AggregateFunction::Sum ||
         kind == AggregateFunction::Average || kind == AggregateFunction::Quantize;
}

std::optional<KeyPart> part_of(const Node& operand, const query::d::RecordField& field,
                               StoredForm form) {
  const auto builtin = static_cast<uint64_t>(operand.builtin);
  if (form == StoredForm::ProbeName) return KeyPart{KeyPart::Kind::ProbeName, builtin};
  if (form != StoredForm::Whole || field.kind != FieldKind::Integer) return std::nullopt;
  // (The same number for signed and unsigned keys, of any size from 4 bytes on.)
  if (operand.kind == NodeKind::Integer && operand.integer <= kNumberMax) {
    return KeyPart{KeyPart::Kind::Number, operand.integer};
  }
  const bool is_pid = operand.kind == NodeKind::Identifier && operand.builtin == Builtin::Pid;
  return is_pid ? std::optional(KeyPart{KeyPart::Kind::Pid, 0}) : std::nullopt;
}

}  // namespace

// Nothing when the key may be another one in the next firing.
std::optional<CellUpdate> ClauseCoder::cell_update(const Statement& statement) const {
  const Node& target = statement.expression.operands[0];
  const query::d::KeyLayout& layout = generated_.keys[statement.aggregation];
  if (!has_sums(script_.aggregations[statement.aggregation].function)) return std::nullopt;
  CellUpdate update{.aggregation = statement.aggregation, .key = {}};
  CLEW_ASSERT(target.operands.size() == layout.fields.size());
  for (size_t i = 0; i < layout.fields.size(); ++i) {
    const auto part = part_of(target.operands[i], layout.fields[i], layout.stored[i].form);
    if (!part) return std::nullopt;
    update.key.push_back(*part);
  }
  return update;
}

// Changes r2.
void ClauseCoder::add_to_cell(Register block, uint32_t word, Register amount) {
  const auto offset = static_cast<int32_t>(8 * word);
  code().load(Size::Double, Register::R2, block, offset);
  code().alu(Alu::Add, Register::R2, amount).store(Size::Double, block, offset, Register::R2);
}

// The number, in r0, is added to a cell.
void ClauseCoder::add_number(uint32_t word, uint32_t update) {
  code().move(Register::R3, Register::R0).load_site_constant(Register::R1, cells_constant(update));
  add_to_cell(Register::R1, word, Register::R3);
}

// r0 = the bucket of quantize() that the number in r0 is in.
void ClauseCoder::find_bucket() {
  const Label negative = code().label();
  const Label found = code().label();
  code().move(Register::R1, Register::R0);
  code().jump_if(Jump::SignedLess, Register::R1, 0, negative);
  code().call(abi::Accessor::BitLength);
  code().alu(Alu::Add, Register::R0, kZeroBucket).jump(found).bind(negative);
  code().negate(Register::R1).call(abi::Accessor::BitLength);
  code().move(Register::R2, kZeroBucket).alu(Alu::Subtract, Register::R2, Register::R0);
  code().move(Register::R0, Register::R2);
  code().jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, found).move(Register::R0, 0);
  code().bind(found);
}

void ClauseCoder::count_in_bucket(const Node& function, uint32_t update) {
  value(function.operands[0]);
  const Slot number = emit_.push();
  if (function.operands.size() > 1) {
    value(function.operands[1]);
  } else {
    code().move(Register::R0, 1);
  }
  const Slot weight = emit_.push();
  emit_.load(Register::R0, number);
  find_bucket();
  code()
      .alu(Alu::ShiftLeft, Register::R0, 3)
      .load_site_constant(Register::R1, cells_constant(update));
  code().alu(Alu::Add, Register::R1, Register::R0);
  emit_.load(Register::R3, weight);
  add_to_cell(Register::R1, 1, Register::R3);
  emit_.release();
  emit_.release();
}

void ClauseCoder::code_cells(const Statement& statement, CellUpdate cell_update) {
  const Node& function = statement.expression.operands[1];
  CLEW_ASSERT(statement.aggregation < script_.aggregations.size() && form_.updates != nullptr);
  const AggregateFunction kind = script_.aggregations[statement.aggregation].function;
  const auto update = static_cast<uint32_t>(form_.updates->size());
  form_.updates->push_back(std::move(cell_update));
  if (kind == AggregateFunction::Quantize) {
    count_in_bucket(function, update);
  } else if (kind != AggregateFunction::Count) {
    const bool is_average = kind == AggregateFunction::Average;
    value(function.operands[0]);
    add_number(is_average ? 2 : 1, update);
    if (is_average) code().move(Register::R0, 1);
    if (is_average) add_number(1, update);
  }
  code().move(Register::R0, 1);
  add_number(0, update);
}

}  // namespace clew::plan::d
