// SPDX-License-Identifier: Apache-2.0
// Joins by time, over the rows of plan::Joined::events as they come: a chain of joins for each
// query (stream/temporal_join.h), and the stages of the plan behind it, up to the selection or the
// groups.
//
// Events come in the order of their times but for a few that are a little late. What has come is
// said by the events themselves, and by the clock where there is one: it lets rows that wait for a
// partner go on where no event comes any more, and does not let an event be of the future.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/value.h"
#include "answer/join_rest.h"
#include "answer/operator.h"
#include "answer/row_batch.h"
#include "answer/row_joiner.h"
#include "plan/joined.h"
#include "stream/temporal_join.h"

namespace clew::answer {

struct TimeJoinLimits {
  int64_t slack_ns = plan::kLateNs;  // An event that is later than that may lack partners.
  size_t batch = 4'096;              // After so many rows they are taken away.
  stream::TemporalLimits sides{.held = plan::kHeldMax, .looks = plan::kChosenFromMax};
  stream::Budget each{.rows = plan::kPartnersMax};  // What an event may cost.
};

struct TimeJoinCounts {
  uint64_t late = 0;       // Events that were too late.
  uint64_t cut = 0;        // Events that would have given, or were to choose from, too many rows.
  uint64_t forgotten = 0;  // Events and rows that were forgotten before their time.
};

class TimeJoins final : public RowJoiner {
 public:
  // Borrows `joined`.
  explicit TimeJoins(const plan::Joined& joined, TimeJoinLimits limits = {});
  ~TimeJoins() override;

  size_t take(RowBatch& events, Part part, RowBatch& rows) override;
  // No event that has come is of a later time.
  void set_now(int64_t now_ns) { now_ = now_ns; }
  // All that happened before has come. Adds the rows that have waited for it; false: there are
  // more, once `rows` are taken away.
  bool pass(int64_t until_ns, RowBatch& rows);
  // Nothing comes any more.
  bool drain(RowBatch& rows);

  [[nodiscard]] const aggregate::Table& counted() const override;
  void forget_counted() override;
  [[nodiscard]] uint64_t passed() const override;
  [[nodiscard]] TimeJoinCounts counts() const;
  // Events and rows, and the bytes that they take.
  [[nodiscard]] size_t held() const;
  [[nodiscard]] size_t held_bytes() const;

 private:
  using Values = std::span<const aggregate::Value>;
  using Moments = std::span<const stream::Moment>;

  // What comes out of one of the joins of a stage.
  class Step final : public stream::JoinedRows {
   public:
    Step(TimeJoins& owner, size_t stage, size_t index)
        : owner_(owner), stage_(stage), index_(index) {}
    void joined(Values row, Moments moments) override {
      owner_.come_out(stage_, index_, row, moments);
    }

   private:
    TimeJoins& owner_;
    size_t stage_;
    size_t index_;
  };
  struct Join {
    std::unique_ptr<Step> step;
    std::unique_ptr<stream::TemporalJoin> join;
    // How much later than events the rows of either side come (plan::lag_of).
    int64_t left_lag_ns = 0;
    int64_t right_lag_ns = 0;
    std::vector<aggregate::Value> left_key;  // In the making.
    std::vector<aggregate::Value> right_key;
  };
  struct Stage {
    std::unique_ptr<JoinRest> rest;
    std::vector<Join> joins;
    RowBatch joined;
    RowBatch selected;  // Of a joined query.
    std::pair<size_t, uint16_t> asker;
  };

  void add_joins(size_t stage);
  void take_event(Values event);
  void enter(size_t stage, uint16_t stream, Values values, const stream::Moment& moment);
  void come_out(size_t stage, size_t index, Values row, Moments moments);
  void go_on(size_t stage, size_t index, Values row, Moments moments);
  void complete(size_t stage, Values row, Moments moments);
  void answer();
  void compute(const std::vector<query::Expression>& keys, Values row,
               std::vector<aggregate::Value>& into);
  bool pass_stage(size_t stage, std::optional<int64_t> until);
  bool pass_all(std::optional<int64_t> until, RowBatch& rows);
  [[nodiscard]] bool is_full() const { return rows_->size() >= limits_.batch; }

  const plan::Joined& joined_;
  TimeJoinLimits limits_;
  std::vector<Stage> stages_;
  RowBindings bindings_{RowLayout{}};
  std::vector<aggregate::Value> values_;  // Of a stream, in the making.
  stream::Budget budget_;
  RowBatch* rows_ = nullptr;  // Of take().
  int64_t now_ = std::numeric_limits<int64_t>::max();
  int64_t until_ = std::numeric_limits<int64_t>::min();  // All before has come.
  uint64_t number_ = 0;
  bool is_passing_ = false;  // A join gives rows for which nothing more has come.
  TimeJoinCounts counts_;
};

}  // namespace clew::answer
