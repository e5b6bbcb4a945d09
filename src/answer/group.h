// SPDX-License-Identifier: Apache-2.0
// Counts rows: the query's values are the key, the arguments behind them what its aggregates count.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "aggregate/table.h"
#include "answer/decode.h"
#include "answer/operator.h"
#include "query/query.h"

namespace clew::answer {

class Group final : public Operator {
 public:
  // Borrows both. A row with an argument that is null does not count, or, as it comes from a left
  // join, does not for that aggregate alone.
  enum class Nulls : uint8_t { LeaveRowOut, LeaveAggregateOut };
  Group(const query::Query& query, Decoder& decoder, Nulls nulls = Nulls::LeaveRowOut);

  void take(RowBatch& rows) override;
  void finish() override {}

  [[nodiscard]] const aggregate::Table& counted() const { return counted_; }
  // What was counted becomes `table`, and the other way round; both have one schema.
  void swap_counted(aggregate::Table& table) { std::swap(counted_, table); }
  void forget_counted() { counted_ = aggregate::Table(counted_.schema()); }
  // How many rows so far, those forgotten included.
  [[nodiscard]] uint64_t passed() const { return passed_; }

 private:
  void count(std::span<const aggregate::Value> row);

  const query::Query& query_;
  Decoder& decoder_;
  Nulls nulls_;
  aggregate::Table counted_;
  uint64_t passed_ = 0;
  // Of the row that is counted.
  aggregate::Key key_;
  std::vector<uint64_t> cells_;
};

}  // namespace clew::answer
