// SPDX-License-Identifier: Apache-2.0
#include "answer/answer.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "answer/columns.h"
#include "answer/structure_text.h"
#include "base/assert.h"

namespace clew::answer {

using aggregate::Value;
using plan::OperatorKind;
using query::Expression;

namespace {

// An aggregate of everything has a row, even when nothing has happened.
std::vector<aggregate::Row> row_of_nothing(const aggregate::TableSchema& schema) {
  aggregate::Table table(schema);
  table.add({}, std::vector<uint64_t>(schema.cell_words()));
  return table.rows();
}

// Wraps: a recording can say any time.
int64_t of_day(int64_t monotonic_ns, int64_t epoch_ns) {
  return static_cast<int64_t>(static_cast<uint64_t>(monotonic_ns) +
                              static_cast<uint64_t>(epoch_ns));
}

std::vector<aggregate::Row> rows_of(const query::Query& query, const aggregate::Table& table) {
  if (has_top(query)) return table.fold_top(query.values.size());
  if (query.values.empty() && table.size() == 0) return row_of_nothing(table.schema());
  return table.rows();
}

}  // namespace

// From the last operator to the first; those up to the merged table run in the members.
Answer::Answer(const plan::Plan& plan, int64_t epoch_ns, Operator& last)
    : query_(plan.query),
      epoch_ns_(epoch_ns),
      last_(last),
      columns_(columns_of(plan.query)),
      layout_{.keys = plan.query.values.size()} {
  if (query_.clustering) add_clusters();
  std::for_each(plan.operators.rbegin(), plan.operators.rend(),
                [this](const plan::Operator& op) { add(op); });
}

void Answer::add(const plan::Operator& op) {
  switch (op.kind) {
    case OperatorKind::Columns:
      // Of clusters what is shown is said behind them.
      add_columns(query_.columns, !query_.clustering);
      // `for N events` gives as many rows, where each is an event.
      if (query_.shape == query::Shape::Events && query_.for_events) add_take(*query_.for_events);
      return;
    case OperatorKind::Having:
      operators_.push_back(std::make_unique<Filter>(query_.having, layout_, first()));
      return;
    case OperatorKind::Order:
      operators_.push_back(std::make_unique<Order>(query_.order, layout_, first()));
      return;
    case OperatorKind::Take:
      add_take(query_.take.value_or(0));
      return;
    case OperatorKind::Filter:
    case OperatorKind::Select:
    case OperatorKind::Merge:
    case OperatorKind::Aggregate:
    case OperatorKind::PartialAggregate:
    case OperatorKind::FinalAggregate:
    case OperatorKind::Group:
    case OperatorKind::PartialGroup:
    case OperatorKind::FinalGroup:
      return;
  }
}

void Answer::add_columns(const std::vector<query::NamedExpression>& columns, bool are_shown) {
  std::vector<const Expression*> expressions;
  expressions.reserve(columns.size());
  for (const query::NamedExpression& column : columns)
    expressions.push_back(&column.expression);
  operators_.push_back(std::make_unique<Select>(
      std::move(expressions), layout_,
      [this, are_shown](size_t column, Value& value) {
        if (are_shown) show(column, value);
      },
      first()));
}

// Their rows begin with what expressions call values.
void Answer::add_clusters() {
  const query::Clustering& clustering = *query_.clustering;
  add_columns(clustering.columns, true);
  if (clustering.take) add_take(*clustering.take);
  if (!clustering.order.empty())
    operators_.push_back(std::make_unique<Order>(clustering.order, layout_, first()));
  if (!clustering.having.empty())
    operators_.push_back(std::make_unique<Filter>(clustering.having, layout_, first()));
  auto clusters = std::make_unique<Clusters>(query_, first());
  clusters_ = clusters.get();
  operators_.push_back(std::move(clusters));
}

void Answer::add_take(uint64_t count) {
  auto take = std::make_unique<Take>(count, first());
  takes_.push_back(take.get());
  operators_.push_back(std::move(take));
}

bool Answer::is_full() const {
  return std::any_of(takes_.begin(), takes_.end(),
                     [](const Take* each) { return each->is_full(); });
}

void Answer::show(size_t column, Value& value) const {
  const std::vector<query::NamedExpression>& answered = query::answered_columns(query_);
  CLEW_ASSERT(column < answered.size());
  CLEW_ASSERT(column < columns_.size());
  const query::Type& type = answered[column].expression.type;
  name_enumerator(query_, value, type);
  const auto* const bytes = std::get_if<std::string>(&value);
  if (columns_[column].type == aggregate::ColumnType::Record && bytes != nullptr) {
    const size_t index = answered[column].expression.index;
    CLEW_ASSERT(index < query_.structures.size());
    value = structure_text(query_, query_.structures[index], *bytes);
  }
  if (columns_[column].type != aggregate::ColumnType::Time) return;
  if (const auto* ns = std::get_if<double>(&value)) {
    value = of_day(std::llround(*ns), epoch_ns_);
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    value = of_day(*whole, epoch_ns_);
  }
}

void Answer::end(collect::Losses& losses) {
  if (clusters_ != nullptr) clusters_->end(losses);
}

void Answer::take(RowBatch& rows) {
  first().take(rows);
}

void Answer::end_rows() {
  first().finish();
}

void Answer::take(const aggregate::Table& table) {
  RowBatch rows(layout_.keys + query_.aggregates.size());
  for (aggregate::Row& row : rows_of(query_, table)) {
    CLEW_ASSERT(row.size() == rows.width());
    std::move(row.begin(), row.end(), rows.add().begin());
  }
  if (!rows.empty()) first().take(rows);
  first().finish();
}

}  // namespace clew::answer
