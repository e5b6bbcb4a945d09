// SPDX-License-Identifier: Apache-2.0
// What probes have counted, as a table.
#include <algorithm>

#include "answer/columns.h"
#include "answer/intake.h"
#include "base/assert.h"
#include "plan/coder.h"
#include "plan/evaluate.h"
#include "plan/kernel_form.h"

namespace clew::answer {

using aggregate::Value;
using query::Expression;

// What a condition on cells can ask for.
class Intake::CellBindings final : public plan::Bindings {
 public:
  CellBindings(Intake& intake, uint32_t process, std::span<const uint64_t> owners)
      : intake_(intake), process_(process), owners_(owners) {}

  Value field(const Expression& expression) override {
    Value value;
    (void)intake_.decoder_.name_field(expression.field, word_of(expression.field), process_, value);
    return value;
  }
  Value input(uint16_t) override { return {}; }
  Value let(uint16_t) override { return {}; }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const Expression&, uint64_t) override { return {}; }

 private:
  // The process, where the key says nothing of owners.
  [[nodiscard]] uint64_t word_of(query::Field field) const {
    for (size_t i = 0; i < owners_.size() && query::is_of_owner(field); ++i) {
      if (plan::word_of_owner(intake_.owner_keys_[i].field) == plan::word_of_owner(field))
        return owners_[i];
    }
    return process_;
  }

  Intake& intake_;
  uint32_t process_;
  std::span<const uint64_t> owners_;
};

bool Intake::keeps(uint32_t process, std::span<const uint64_t> owners) {
  CellBindings bindings(*this, process, owners);
  return std::all_of(cell_filters_.begin(), cell_filters_.end(), [&](const Expression* filter) {
    return plan::is_true(plan::evaluate(*filter, bindings));
  });
}

void Intake::add_dense(const aggregate::Accumulator& cells, uint32_t process,
                       aggregate::Table& table) {
  if (!keeps(process, {})) return;
  for (uint32_t group = 0; group < grouping_.keys.size(); ++group) {
    const std::span<const uint64_t> words = cells.group(process, 0, group);
    const bool untouched =
        std::all_of(words.begin(), words.end(), [](uint64_t word) { return word == 0; });
    if (untouched && !query_.values.empty()) continue;
    if (words.empty()) continue;
    aggregate::Key key = grouping_.keys[group];
    CLEW_ASSERT(key.size() == query_.values.size());
    for (size_t i = 0; i < key.size(); ++i) {
      const Expression& value = query_.values[i].expression;
      if (plan::is_process_constant(value))
        (void)decoder_.name_field(value.field, process, process, key[i]);
    }
    table.add(key, words);
  }
}

void Intake::add_table(const aggregate::Accumulator& cells, uint32_t process,
                       aggregate::Table& table) {
  for (const auto& [words, counts] : cells.table(process, 0)) {
    aggregate::Key key;
    std::span<const uint64_t> rest(words);
    const auto take_part = [&](const Expression& meaning) {
      const size_t count = plan::stored_words(meaning);
      CLEW_ASSERT(count <= rest.size());
      decoder_.decode(meaning, rest.first(count), process, key.emplace_back());
      decoder_.make_key(key.back(), meaning.type);
      rest = rest.subspan(count);
    };
    for (const query::NamedExpression& value : query_.values)
      take_part(value.expression);
    for (const query::Aggregate& aggregate : query_.aggregates) {
      if (aggregate.function != abi::AggregateFunction::TopK) continue;
      take_part(aggregate.arguments[0]);
      name_enumerator(query_, key.back(), aggregate.arguments[0].type);
    }
    // The key has no words of which nobody knows the meaning. Of processes none is behind it.
    CLEW_ASSERT(rest.empty() || rest.size() == owner_keys_.size());
    if (keeps(process, rest)) table.add(key, counts);
  }
}

aggregate::Table Intake::table_of(const aggregate::Accumulator& cells) {
  aggregate::Table table(group_.counted().schema());
  for (const uint32_t process : cells.processes()) {
    if (lowered_.form == plan::StateForm::Dense) add_dense(cells, process, table);
    if (lowered_.form == plan::StateForm::Table) add_table(cells, process, table);
  }
  return table;
}

}  // namespace clew::answer
