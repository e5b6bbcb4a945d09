// SPDX-License-Identifier: Apache-2.0
// The operators of a plan that run in the tracer. Rows pass them in batches, from one to the next;
// answer.h and intake.h put them together as the plan says.
//
// What a row holds: `RowLayout`. Between the scan and the selection these are captures of events
// (plan/capture.h); behind it the query's values and, before they are counted, the arguments of
// its aggregates; behind the table values and finished aggregates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/table.h"
#include "aggregate/value.h"
#include "answer/row_batch.h"
#include "plan/evaluate.h"
#include "query/query.h"

namespace clew::answer {

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // May change the rows, and leave anything in them.
  virtual void take(RowBatch& rows) = 0;
  // No more rows belong to this answer (of an interval, or the last): what was kept back goes on.
  virtual void finish() = 0;
};

// The last operator where rows go to a caller: gives it them.
class Rows final : public Operator {
 public:
  void set(RowBatch& into) { into_ = &into; }
  void take(RowBatch& rows) override;
  void finish() override {}

 private:
  RowBatch* into_ = nullptr;
};

// Where the leaves of an expression stand in a row.
struct RowLayout {
  size_t keys = 0;  // Values begin at 0, aggregates behind so many of them. Captures begin at 0.
};

// The leaves of an expression over a row.
class RowBindings final : public plan::Bindings {
 public:
  explicit RowBindings(RowLayout layout) : layout_(layout) {}
  void set(std::span<const aggregate::Value> row) { row_ = row; }

  aggregate::Value field(const query::Expression&) override { return {}; }
  aggregate::Value input(uint16_t index) override { return row_[index]; }
  aggregate::Value let(uint16_t) override { return {}; }
  aggregate::Value value(uint16_t index) override { return row_[index]; }
  aggregate::Value aggregate(uint16_t index) override { return row_[layout_.keys + index]; }
  aggregate::Value memory(const query::Expression&, uint64_t) override { return {}; }

  // The value itself, where the expression is no more than a leaf; else null.
  [[nodiscard]] const aggregate::Value* leaf(const query::Expression& expression) const;
  // Computes it. Text takes the memory of what `into` held.
  void evaluate(const query::Expression& expression, aggregate::Value& into);

 private:
  RowLayout layout_;
  std::span<const aggregate::Value> row_;
};

// Rows of which all conditions are true. All operators borrow what they are made from.
class Filter final : public Operator {
 public:
  Filter(const std::vector<query::Expression>& conditions, RowLayout layout, Operator& next)
      : conditions_(conditions), bindings_(layout), next_(next) {}
  void take(RowBatch& rows) override;
  void finish() override { next_.finish(); }

 private:
  const std::vector<query::Expression>& conditions_;
  RowBindings bindings_;
  Operator& next_;
};

// One value for each expression.
class Select final : public Operator {
 public:
  // What is done to the value of a column once it is computed.
  using Change = std::function<void(size_t column, aggregate::Value&)>;

  Select(std::vector<const query::Expression*> expressions, RowLayout layout, Change change,
         Operator& next)
      : expressions_(std::move(expressions)),
        bindings_(layout),
        change_(std::move(change)),
        next_(next),
        out_(expressions_.size()) {}
  void take(RowBatch& rows) override;
  void finish() override { next_.finish(); }

 private:
  std::vector<const query::Expression*> expressions_;
  RowBindings bindings_;
  Change change_;
  Operator& next_;
  RowBatch out_;
};

// Sorts all rows of an answer, stably.
class Order final : public Operator {
 public:
  Order(const std::vector<query::OrderBy>& order, RowLayout layout, Operator& next)
      : order_(order), bindings_(layout), next_(next) {}
  void take(RowBatch& rows) override;
  void finish() override;

 private:
  const std::vector<query::OrderBy>& order_;
  RowBindings bindings_;
  Operator& next_;
  size_t width_ = 0;
  std::vector<aggregate::Row> kept_;  // With their sort keys behind them.
};

// The first rows of each answer.
class Take final : public Operator {
 public:
  Take(uint64_t count, Operator& next) : count_(count), left_(count), next_(next) {}
  [[nodiscard]] bool is_full() const { return left_ == 0; }
  void take(RowBatch& rows) override;
  void finish() override;

 private:
  uint64_t count_;
  uint64_t left_;
  Operator& next_;
};

}  // namespace clew::answer
