// SPDX-License-Identifier: Apache-2.0
#include "plan/d/key_layout.h"

#include "base/assert.h"
#include "plan/d/fields.h"
#include "plan/d/one_of.h"

namespace clew::plan::d {

using query::d::Builtin;
using query::d::FieldKind;
using query::d::KeyLayout;
using query::d::Node;
using query::d::NodeKind;
using query::d::RecordField;
using query::d::Script;
using query::d::Statement;
using query::d::StatementKind;
using query::d::StoredForm;

namespace {

uint32_t to_words(uint32_t size_bytes) {
  return (size_bytes + 7) & ~7U;
}

StoredForm form_of(const Node& operand) {
  if (operand.kind != NodeKind::Identifier) return StoredForm::Whole;
  if (operand.builtin == Builtin::Execname) return StoredForm::CommandName;
  // (That of a provider may have the pid of who fires.)
  const bool is_name =
      is_one_of(operand.builtin, Builtin::Probemod, Builtin::Probefunc, Builtin::Probename);
  return is_name ? StoredForm::ProbeName : StoredForm::Whole;
}

class KeyPlanner {
 public:
  KeyPlanner(const Script& script, uint32_t string_bytes)
      : script_(script), string_bytes_(string_bytes), layouts_(script.aggregations.size()) {}

  std::vector<KeyLayout> plan() {
    for (const query::d::Clause& clause : script_.clauses)
      query::d::visit_statements(clause.body, [this](const Statement& each) { add(each); });
    for (KeyLayout& layout : layouts_)
      place(layout);
    return std::move(layouts_);
  }

 private:
  void add(const Statement& statement) {
    if (statement.kind != StatementKind::Aggregate) return;
    add_use(statement.aggregation, statement.expression.operands[0]);
  }

  // The first use decides on the fields; the checker saw to it that all others agree. A short form
  // needs all uses.
  void add_use(uint32_t aggregation, const Node& target) {
    CLEW_ASSERT(aggregation < layouts_.size());
    KeyLayout& layout = layouts_[aggregation];
    const bool is_first = layout.fields.empty();
    for (size_t i = 0; i < target.operands.size(); ++i) {
      const StoredForm form = form_of(target.operands[i]);
      if (is_first) {
        layout.fields.push_back(field(aggregation, target.operands[i], i));
        layout.stored.push_back({.form = form});
        continue;
      }
      CLEW_ASSERT(i < layout.stored.size());
      if (layout.stored[i].form != form) {
        layout.stored[i].form = StoredForm::Whole;
      }
    }
  }

  [[nodiscard]] RecordField field(uint32_t aggregation, const Node& operand, size_t index) const {
    RecordField field = field_of(script_, operand, string_bytes_);
    const auto& keys = script_.aggregations[aggregation].keys;
    if (index < keys.size() && field.kind == FieldKind::Integer) field.type = keys[index];
    return field;
  }

  static void place(KeyLayout& layout) {
    for (size_t i = 0; i < layout.fields.size(); ++i) {
      RecordField& field = layout.fields[i];
      query::d::StoredField& stored = layout.stored[i];
      const uint32_t whole = field.kind == FieldKind::Integer ? 8 : to_words(field.size_bytes);
      field.offset_bytes = layout.size_bytes;
      layout.size_bytes += whole;
      stored.offset_bytes = layout.stored_bytes;
      if (stored.form == StoredForm::Whole) stored.size_bytes = whole;
      if (stored.form == StoredForm::CommandName) stored.size_bytes = query::d::kCommandNameBytes;
      layout.stored_bytes += stored.size_bytes;
    }
  }

  const Script& script_;
  uint32_t string_bytes_;
  std::vector<KeyLayout> layouts_;
};

}  // namespace

std::vector<KeyLayout> lay_out_keys(const Script& script, uint32_t string_bytes) {
  return KeyPlanner(script, string_bytes).plan();
}

}  // namespace clew::plan::d
