// SPDX-License-Identifier: Apache-2.0
// The last operators of a plan, once for all members of a session: columns, having, order, take.
// Rows of the query's values come in one by one, or a merged table at the end of an interval.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aggregate/table.h"
#include "aggregate/value.h"
#include "answer/clusters.h"
#include "answer/operator.h"
#include "answer/row_batch.h"
#include "plan/plan.h"

namespace clew::answer {

class Answer {
 public:
  // Borrows `plan` and `last`, which gets rows of the columns. `epoch_ns`: CLOCK_REALTIME -
  // CLOCK_MONOTONIC; answers speak of the time of day, all before them is in the monotonic clock.
  Answer(const plan::Plan& plan, int64_t epoch_ns, Operator& last);

  [[nodiscard]] const std::vector<aggregate::Column>& columns() const { return columns_; }

  // Shape::Events. Leaves any rows in it.
  void take(RowBatch& rows);
  // … of which no more are wanted: `take`, `for N events`.
  [[nodiscard]] bool is_full() const;
  // … and these were all of an interval, or of the session: what is outstanding then.
  void end_rows();
  // Shape::Groups: the whole answer of an interval, or of the session.
  void take(const aggregate::Table& table);
  // Nothing more comes: what is known of all rows alone goes on.
  void end(collect::Losses& losses);
  // All rows come then.
  [[nodiscard]] bool waits_for_end() const { return clusters_ != nullptr; }

 private:
  void add(const plan::Operator& op);
  void add_columns(const std::vector<query::NamedExpression>& columns, bool are_shown);
  void add_clusters();
  void add_take(uint64_t count);
  void show(size_t column, aggregate::Value& value) const;
  [[nodiscard]] Operator& first() { return operators_.empty() ? last_ : *operators_.back(); }

  const query::Query& query_;
  int64_t epoch_ns_;
  Operator& last_;
  std::vector<aggregate::Column> columns_;
  RowLayout layout_;
  std::vector<const Take*> takes_;                    // Among the operators.
  Clusters* clusters_ = nullptr;                      // The same; or null.
  std::vector<std::unique_ptr<Operator>> operators_;  // The first one last.
};

}  // namespace clew::answer
