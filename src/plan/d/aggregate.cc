// SPDX-License-Identifier: Apache-2.0
// Aggregations: the key, and the update.
#include <algorithm>

#include "base/assert.h"
#include "plan/d/clause_coder.h"
#include "plan/d/fields.h"

namespace clew::plan::d {

using abi::MachineAccessor;
using query::d::FieldKind;
using query::d::Node;
using query::d::RecordField;
using query::d::StoredForm;

namespace {

// Whether the value is the same all through the clause, and is had without the key area.
bool is_constant(const Node& node) {
  if (node.kind == query::d::NodeKind::Integer) return true;
  if (dynamic_action(node) != query::d::Action::None) {
    return std::all_of(node.operands.begin(), node.operands.end(), is_constant);
  }
  return node.kind == query::d::NodeKind::Identifier && node.builtin != query::d::Builtin::None;
}

}  // namespace

// @name[keys] = function(value, weight). The keys come first, but other values may need the key
// area, so only constant ones are written to it at once.
void ClauseCoder::code_aggregate(const Statement& statement) {
  auto update = form_.updates == nullptr ? std::nullopt : cell_update(statement);
  if (update) return code_cells(statement, std::move(*update));
  const Node& target = statement.expression.operands[0];
  const Node& function = statement.expression.operands[1];
  CLEW_ASSERT(statement.aggregation < generated_.keys.size());
  const query::d::KeyLayout& key = generated_.keys[statement.aggregation];
  const auto argument = [&](size_t index, int32_t otherwise) {
    if (function.operands.size() > index) {
      value(function.operands[index]);
    } else {
      code().move(Register::R0, otherwise);
    }
    return emit_.push();
  };
  const bool is_direct = std::all_of(target.operands.begin(), target.operands.end(), is_constant);
  const uint32_t room = is_direct ? abi::kMachineKeyOffset : temporary(key.stored_bytes + 8);
  if (!is_direct) write_keys(target, key, room);
  const Slot first = argument(0, 1);
  const Slot weight = argument(1, 1);
  if (is_direct) {
    write_keys(target, key, room);
  } else {
    copy_key(room, key.stored_bytes);
  }
  emit_.argument(Register::R2, statement.aggregation);
  emit_.load(Register::R3, first);
  emit_.load(Register::R4, weight);
  emit_.release();
  emit_.release();
  emit_.call(MachineAccessor::Aggregate);
}

void ClauseCoder::write_keys(const Node& target, const query::d::KeyLayout& key, uint32_t base) {
  CLEW_ASSERT(target.operands.size() == key.fields.size());
  CLEW_ASSERT(key.stored.size() == key.fields.size());
  for (size_t i = 0; i < key.fields.size(); ++i) {
    const query::d::StoredField& stored = key.stored[i];
    CLEW_ASSERT(stored.offset_bytes + stored.size_bytes <= key.stored_bytes);
    const uint32_t at = base + stored.offset_bytes;
    if (stored.form == StoredForm::Whole) {
      record_key(target.operands[i], key.fields[i], at);
    } else {
      record_short_key(target.operands[i], stored.form, at);
    }
  }
}

void ClauseCoder::record_key(const Node& operand, const RecordField& field, uint32_t base) {
  if (field.kind == FieldKind::Bytes) {  // What is behind them in their last word is compared, too.
    code().load_window(Register::R1, base + (field.size_bytes - 1) / 8 * 8);
    code().store(isa::Size::Double, Register::R1, 0, 0);
  }
  if (field.kind != FieldKind::Integer) return record_at(operand, field, base);
  value(operand);
  convert(operand.type, field.type);
  code().load_window(Register::R1, base);
  code().store(isa::Size::Double, Register::R1, 0, Register::R0);
}

void ClauseCoder::record_short_key(const Node& operand, StoredForm form, uint32_t base) {
  emit_.argument(Register::R2, static_cast<uint32_t>(operand.builtin));
  if (form == StoredForm::CommandName) {
    emit_.argument(Register::R3, base);
    return emit_.call(MachineAccessor::BuiltinString);
  }
  emit_.call(MachineAccessor::ProbeName);
  code().load_window(Register::R1, base);
  code().store(isa::Size::Double, Register::R1, 0, Register::R0);
}

void ClauseCoder::copy_key(uint32_t from, uint32_t size_bytes) {
  constexpr uint32_t kInlineBytes = 32;
  if (size_bytes > kInlineBytes) {
    code().load_constant(Register::R3, abi::kMachineWindowTag + from);
    emit_.argument(Register::R2, abi::kMachineKeyOffset);
    emit_.argument(Register::R4, size_bytes);
    emit_.argument(Register::R5, 0);
    return emit_.call(MachineAccessor::Copy);
  }
  for (uint32_t done = 0; done < size_bytes; done += 8) {
    code().load_window(Register::R2, from + done);
    code().load(isa::Size::Double, Register::R2, Register::R2, 0);
    code().load_window(Register::R1, abi::kMachineKeyOffset + done);
    code().store(isa::Size::Double, Register::R1, 0, Register::R2);
  }
}

}  // namespace clew::plan::d
