// SPDX-License-Identifier: Apache-2.0
// What is outstanding, over the rows of plan::Joined::events as they come: what events of stream 0
// have begun and those of stream 1 have not ended (stream/open_rows.h), and the stages of the plan
// behind it. Rows come when somebody asks, from the oldest one on: each is the event that began,
// and the moment that was asked about as the time of what would have ended it.
//
// A key that is a null pointer, or what calls of the kernel give for an error, begins nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "aggregate/value.h"
#include "answer/join_rest.h"
#include "answer/operator.h"
#include "answer/row_batch.h"
#include "answer/row_joiner.h"
#include "plan/joined.h"
#include "stream/open_rows.h"

namespace clew::answer {

struct OutstandingLimits {
  int64_t slack_ns = plan::kLateNs;  // How late an event may come.
  size_t batch = 4'096;              // After so many rows they are taken away.
  stream::OpenRows::Limits rows{.rows = plan::kOutstandingMax};
};

class Outstanding final : public RowJoiner {
 public:
  // Borrows `joined`.
  explicit Outstanding(const plan::Joined& joined, OutstandingLimits limits = {});

  size_t take(RowBatch& events, Part part, RowBatch& rows) override;
  // No event that has come is of a later time.
  void set_now(int64_t now_ns) { now_ = now_ns; }

  // From here on rows are of what was begun by `at_ns` and has not been seen to end.
  void ask(int64_t at_ns);
  // Adds some of them; false: there are more, once `rows` are taken away.
  bool give(RowBatch& rows);
  // The time of the latest event so far; that of none is the least.
  [[nodiscard]] int64_t latest() const { return latest_; }
  // Nothing comes any more.
  void drain() { rows_.drain(); }

  [[nodiscard]] const aggregate::Table& counted() const override { return rest_.group().counted(); }
  void forget_counted() override { rest_.group().forget_counted(); }
  [[nodiscard]] uint64_t passed() const override { return rest_.group().passed(); }
  [[nodiscard]] const stream::OpenRows::Counts& counts() const { return rows_.counts(); }
  [[nodiscard]] size_t size() const { return rows_.size(); }
  [[nodiscard]] size_t bytes() const { return rows_.bytes(); }

 private:
  using Values = std::span<const aggregate::Value>;

  void take_event(Values event);
  void begin(Values event, int64_t time_ns);
  void end(Values event, int64_t time_ns);
  void compute(const std::vector<query::Expression>& keys, Values row);
  void gather(const std::vector<size_t>& columns, Values event);
  [[nodiscard]] bool is_of_failure() const;

  const plan::Joined& joined_;
  const plan::JoinStage& stage_;
  const query::Within& within_;
  OutstandingLimits limits_;
  // Of the columns of stream 0, those that are held: a row has its time anyway.
  std::vector<size_t> held_columns_;
  stream::OpenRows rows_;
  mutable JoinRest rest_;
  RowBatch made_;
  RowBindings bindings_{RowLayout{}};
  std::vector<aggregate::Value> key_;  // In the making,
  std::vector<aggregate::Value> values_;
  std::vector<aggregate::Value> held_;
  int64_t now_ = std::numeric_limits<int64_t>::max();
  int64_t latest_ = std::numeric_limits<int64_t>::min();
  int64_t asked_ = 0;
  std::vector<uint32_t> asked_rows_;
  size_t given_ = 0;
};

}  // namespace clew::answer
