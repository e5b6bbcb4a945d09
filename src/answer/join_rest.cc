// SPDX-License-Identifier: Apache-2.0
#include "answer/join_rest.h"

#include <algorithm>

#include "plan/evaluate.h"

namespace clew::answer {
namespace {

using aggregate::Value;
using query::Expression;

std::vector<const Expression*> selected(const query::Query& rest) {
  std::vector<const Expression*> all;
  all.reserve(rest.values.size() + rest.aggregates.size());
  for (const query::NamedExpression& value : rest.values)
    all.push_back(&value.expression);
  for (const query::Aggregate& aggregate : rest.aggregates) {
    for (const Expression& argument : aggregate.arguments)
      all.push_back(&argument);
  }
  return all;
}

}  // namespace

JoinRest::JoinRest(const query::Query& rest, bool is_answer)
    : rest_(rest),
      decoder_(names_),
      group_(rest, decoder_, Group::Nulls::LeaveAggregateOut),
      is_grouped_(rest.shape == query::Shape::Groups),
      counts_(is_grouped_ && is_answer),
      width_(selected(rest).size()),
      select_(
          selected(rest), RowLayout{}, [](size_t, Value&) {}, last()),
      filter_(rest.where, RowLayout{}, select_) {}

void JoinRest::take(RowBatch& joined, RowBatch& rows) {
  collected_.set(rows);
  filter_.take(joined);
}

std::vector<aggregate::Row> JoinRest::groups_with(std::span<const std::vector<Value>* const> found,
                                                  std::optional<aggregate::Table>& table) {
  RowBatch rows(width_);
  for (const std::vector<Value>* const each : found)
    std::copy(each->begin(), each->end(), rows.add().begin());
  if (!table) table.emplace(group_.counted().schema());
  group_.swap_counted(*table);
  group_.take(rows);
  std::vector<aggregate::Row> groups = finished();
  group_.swap_counted(*table);
  return groups;
}

std::vector<aggregate::Row> JoinRest::finished() const {
  std::vector<aggregate::Row> groups;
  RowBindings bindings({.keys = rest_.values.size()});
  for (const aggregate::Row& row : group_.counted().rows()) {
    bindings.set(row);
    if (!plan::are_true(rest_.having, bindings)) continue;
    aggregate::Row& columns = groups.emplace_back(rest_.columns.size());
    for (size_t i = 0; i < columns.size(); ++i)
      bindings.evaluate(rest_.columns[i].expression, columns[i]);
  }
  return groups;
}

Operator& JoinRest::last() {
  if (counts_) return group_;
  return collected_;
}

}  // namespace clew::answer
