// SPDX-License-Identifier: Apache-2.0
#include "answer/operator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"

namespace clew::answer {

using aggregate::Value;
using query::Expression;
using query::ExpressionKind;

const Value* RowBindings::leaf(const Expression& expression) const {
  if (expression.kind == ExpressionKind::Input || expression.kind == ExpressionKind::Value) {
    CLEW_ASSERT(expression.index < row_.size());
    return &row_[expression.index];
  }
  if (expression.kind != ExpressionKind::Aggregate) return nullptr;
  CLEW_ASSERT(layout_.keys + expression.index < row_.size());
  return &row_[layout_.keys + expression.index];
}

void RowBindings::evaluate(const Expression& expression, Value& into) {
  if (const Value* const known = leaf(expression)) {
    into = *known;
  } else {
    into = plan::evaluate(expression, *this);
  }
}

void Rows::take(RowBatch& rows) {
  CLEW_ASSERT(into_ != nullptr);
  CLEW_ASSERT(into_ != &rows);
  CLEW_ASSERT(rows.empty() || into_->width() == rows.width());
  for (size_t i = 0; i < rows.size(); ++i)
    std::swap_ranges(rows.at(i).begin(), rows.at(i).end(), into_->add().begin());
}

void Filter::take(RowBatch& rows) {
  size_t kept = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    bindings_.set(rows.at(i));
    if (plan::are_true(conditions_, bindings_)) rows.swap_rows(kept++, i);
  }
  rows.shorten(kept);
  if (!rows.empty()) next_.take(rows);
}

void Select::take(RowBatch& rows) {
  out_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    bindings_.set(rows.at(i));
    const std::span<Value> values = out_.add();
    CLEW_ASSERT(values.size() == expressions_.size());
    for (size_t k = 0; k < expressions_.size(); ++k) {
      bindings_.evaluate(*expressions_[k], values[k]);
      change_(k, values[k]);
    }
  }
  next_.take(out_);
}

void Order::take(RowBatch& rows) {
  CLEW_ASSERT(kept_.empty() || width_ == rows.width());
  width_ = rows.width();
  for (size_t i = 0; i < rows.size(); ++i) {
    bindings_.set(rows.at(i));
    aggregate::Row row(width_ + order_.size());
    for (size_t k = 0; k < order_.size(); ++k)
      bindings_.evaluate(order_[k].expression, row[width_ + k]);
    std::move(rows.at(i).begin(), rows.at(i).end(), row.begin());
    kept_.push_back(std::move(row));
  }
}

void Order::finish() {
  std::vector<aggregate::Order> orders;
  for (size_t k = 0; k < order_.size(); ++k)
    orders.push_back({.column = width_ + k, .descending = order_[k].descending});
  aggregate::sort_rows(kept_, orders);
  RowBatch sorted(width_);
  for (aggregate::Row& row : kept_) {
    CLEW_ASSERT(row.size() == width_ + order_.size());
    std::move(row.begin(), row.begin() + static_cast<ptrdiff_t>(width_), sorted.add().begin());
  }
  kept_.clear();
  if (!sorted.empty()) next_.take(sorted);
  next_.finish();
}

void Take::take(RowBatch& rows) {
  if (rows.size() > left_) rows.shorten(left_);
  CLEW_ASSERT(rows.size() <= left_);
  left_ -= rows.size();
  if (!rows.empty()) next_.take(rows);
}

void Take::finish() {
  left_ = count_;
  next_.finish();
}

}  // namespace clew::answer
