// SPDX-License-Identifier: Apache-2.0
#include "answer/intake.h"

#include <algorithm>
#include <utility>

#include "answer/columns.h"
#include "base/assert.h"
#include "plan/evaluate.h"
#include "query/print.h"

namespace clew::answer {

using aggregate::Value;
using query::Expression;
using query::Field;

// A source that fires in the tracer.
class Intake::HostBindings final : public plan::Bindings {
 public:
  HostBindings(Intake& intake, uint16_t source, int64_t now_ns)
      : intake_(intake), source_(intake.query_.sources[source]), now_ns_(now_ns) {}

  Value field(const Expression& expression) override {
    if (expression.field == Field::Time) return now_ns_;
    if (expression.field == Field::Probe) {
      return source_.label.empty() ? query::print(source_) : source_.label;
    }
    Value value;
    if (expression.field == Field::Host) intake_.decoder_.name_field(Field::Host, 0, 0, value);
    return value;
  }
  Value input(uint16_t index) override { return evaluate(source_.inputs[index], *this); }
  Value let(uint16_t index) override {
    return evaluate(intake_.query_.lets[index].expression, *this);
  }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const Expression&, uint64_t) override { return {}; }

 private:
  Intake& intake_;
  const query::Source& source_;
  int64_t now_ns_;
};

namespace {

size_t argument_count(const query::Query& query) {
  size_t count = 0;
  for (const query::Aggregate& aggregate : query.aggregates)
    count += aggregate.arguments.size();
  return count;
}

}  // namespace

Expected<std::unique_ptr<Intake>> Intake::make(const plan::Plan& plan, const plan::Lowered& lowered,
                                               const plan::Grouping& grouping, Names& names) {
  plan::Captured captured;
  if (lowered.form == plan::StateForm::Events) captured = CLEW_TRY(plan::capture(plan));
  return std::make_unique<Intake>(plan, lowered, grouping, names, std::move(captured));
}

Intake::Intake(const plan::Plan& plan, const plan::Lowered& lowered, const plan::Grouping& grouping,
               Names& names, plan::Captured captured)
    : query_(plan.query),
      lowered_(lowered),
      grouping_(grouping),
      decoder_(names),
      captured_(std::move(captured)),
      scan_(captured_, lowered.clock, decoder_),
      scanned_(scan_.width()),
      cell_filters_(plan::cell_filters(plan)),
      owner_keys_(plan::owner_keys(plan)),
      selected_(query_.values.size() + argument_count(query_)),
      group_(query_, decoder_) {
  build();
}

Operator& Intake::behind_selection() {
  if (query_.shape == query::Shape::Groups) return group_;
  return rows_;
}

// From the last operator to the first. What probes have done already is not in `captured_`.
void Intake::build() {
  std::vector<const Expression*> selected;
  for (const auto* list : {&captured_.values, &captured_.arguments}) {
    for (const Expression& expression : *list)
      selected.push_back(&expression);
  }
  const auto make_keys = [this](size_t column, Value& value) {
    if (column < captured_.values.size()) decoder_.make_key(value, captured_.values[column].type);
  };
  select_ =
      std::make_unique<Select>(std::move(selected), RowLayout{}, make_keys, behind_selection());
  if (captured_.filters.empty()) return;
  filter_ = std::make_unique<Filter>(captured_.filters, RowLayout{}, *select_);
}

void Intake::take(const collect::EventBatch& events, collect::EventRange range, RowBatch& rows) {
  CLEW_ASSERT(range.begin <= range.end);
  CLEW_ASSERT(range.end <= events.size());
  scanned_.clear();
  for (size_t i = range.begin; i < range.end; ++i)
    scan_.read(events.at(i), scanned_.add());
  take_captured(scanned_, rows);
}

void Intake::take_captured(RowBatch& captured, RowBatch& rows) {
  CLEW_ASSERT(captured.width() == scan_.width());
  rows_.set(rows);
  Operator& first = filter_ ? static_cast<Operator&>(*filter_) : *select_;
  first.take(captured);
}

// --- events of the tracer's own ------------------------------------------------------------------

// One row of what `bindings` say, to what stands behind the selection.
void Intake::select(const query::Query& query, plan::Bindings& bindings, bool are_keys) {
  CLEW_ASSERT(query.values.size() + argument_count(query) == selected_.width());
  selected_.clear();
  const std::span<Value> row = selected_.add();
  size_t at = 0;
  for (const query::NamedExpression& value : query.values) {
    row[at] = evaluate(value.expression, bindings);
    if (are_keys) decoder_.make_key(row[at], value.expression.type);
    ++at;
  }
  for (const query::Aggregate& aggregate : query.aggregates) {
    for (const Expression& argument : aggregate.arguments)
      row[at++] = evaluate(argument, bindings);
  }
  CLEW_ASSERT(at == row.size());
}

void Intake::fire(uint16_t source, int64_t monotonic_ns, RowBatch& rows) {
  CLEW_ASSERT(source < query_.sources.size());
  HostBindings bindings(*this, source, monotonic_ns);
  if (!plan::are_true(query_.where, bindings)) return;
  select(query_, bindings, false);
  rows_.set(rows);
  behind_selection().take(selected_);
}

}  // namespace clew::answer
