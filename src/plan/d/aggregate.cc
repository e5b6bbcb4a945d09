// SPDX-License-Identifier: Apache-2.0
// Aggregations: the key's layout, and the update.
#include "plan/d/clause_coder.h"
#include "plan/d/fields.h"

namespace clew::plan::d {

using abi::DAccessor;
using query::d::FieldKind;
using query::d::RecordField;

// @name[keys] = function(value, weight): the keys go to temporaries first, as their own
// expressions may use the key area.
void ClauseCoder::code_aggregate(const Statement& statement) {
  const Node& target = statement.expression.operands[0];
  const Node& function = statement.expression.operands[1];
  lay_out_key(statement.aggregation, target);
  const query::d::KeyLayout& key = generated_.keys[statement.aggregation];
  const uint32_t room = temporary(key.size_bytes + 8);
  for (size_t i = 0; i < target.operands.size() && i < key.fields.size(); ++i) {
    record_key(target.operands[i], key.fields[i], room + key.fields[i].offset_bytes);
  }
  const auto argument = [&](size_t index, int32_t otherwise) {
    if (function.operands.size() > index) {
      value(function.operands[index]);
    } else {
      code().move(Register::R0, otherwise);
    }
    return emit_.push();
  };
  const Slot first = argument(0, 1);
  const Slot weight = argument(1, 1);
  copy_key(room, key.size_bytes);
  emit_.argument(Register::R2, statement.aggregation);
  emit_.load(Register::R3, first);
  emit_.load(Register::R4, weight);
  emit_.release();
  emit_.release();
  emit_.call(DAccessor::Aggregate);
}

void ClauseCoder::record_key(const Node& operand, const RecordField& field, uint32_t base) {
  if (field.kind != FieldKind::Integer) return record_at(operand, field, base);
  value(operand);
  convert(operand.type, field.type);
  code().load_window(Register::R1, base);
  code().store(isa::Size::Double, Register::R1, 0, Register::R0);
}

void ClauseCoder::copy_key(uint32_t from, uint32_t size_bytes) {
  constexpr uint32_t kInlineBytes = 32;
  if (size_bytes > kInlineBytes) {
    code().load_constant(Register::R3, abi::kDWindowTag + from);
    emit_.argument(Register::R2, abi::kDKeyOffset);
    emit_.argument(Register::R4, size_bytes);
    emit_.argument(Register::R5, 0);
    return emit_.call(DAccessor::Copy);
  }
  for (uint32_t done = 0; done < size_bytes; done += 8) {
    code().load_window(Register::R2, from + done);
    code().load(isa::Size::Double, Register::R2, Register::R2, 0);
    code().load_window(Register::R1, abi::kDKeyOffset + done);
    code().store(isa::Size::Double, Register::R1, 0, Register::R2);
  }
}

// The first use decides; the checker saw to it that all others agree.
void ClauseCoder::lay_out_key(uint32_t aggregation, const Node& target) {
  query::d::KeyLayout& key = generated_.keys[aggregation];
  if (key.size_bytes != 0 || target.operands.empty()) return;
  for (const Node& operand : target.operands) {
    RecordField field = field_of(script_, operand, storage_.string_bytes());
    const size_t index = key.fields.size();
    const auto& keys = script_.aggregations[aggregation].keys;
    if (index < keys.size() && field.kind == FieldKind::Integer) field.type = keys[index];
    field.offset_bytes = key.size_bytes;
    const uint32_t stored = field.kind == FieldKind::Integer ? 8 : field.size_bytes;
    key.size_bytes += (stored + 7) & ~7U;
    key.fields.push_back(field);
  }
  if (key.size_bytes > abi::kDKeyBytesMax) is_too_large_ = true;
  generated_.aggregations[aggregation].key_bytes = key.size_bytes;
}

}  // namespace clew::plan::d
