// SPDX-License-Identifier: Apache-2.0
#include "cluster/answered_events.h"

#include <utility>
#include <vector>

#include "answer/answer.h"
#include "answer/event_table.h"
#include "answer/row_batch.h"
#include "answer/time_joins.h"
#include "cluster/clock.h"
#include "cluster/to_sink.h"
#include "collect/losses.h"
#include "plan/plan.h"
#include "session/time_windows.h"
#include "stream/time.h"

namespace clew::cluster {
namespace {

using aggregate::Table;

// Times in tables are of the time of day, as those of windows are.
class SingleEvents final : public AnsweredRows {
 public:
  SingleEvents(query::Query query, output::RowSink& sink)
      : plan_(plan::plain(std::move(query))), to_sink_(sink), answer_(plan_, 0, to_sink_) {}

  [[nodiscard]] std::span<const aggregate::Column> columns() const override {
    return answer_.columns();
  }
  [[nodiscard]] output::RowMode mode() const override { return output::RowMode::Stream; }
  Expected<void> take_all(const Table& table) override { return take(table, {}); }
  Expected<void> take(const Table& table, const output::Interval&) override {
    return answer::give_events(table, plan_.query, [this](answer::RowBatch& rows) {
      if (!answer_.is_full()) answer_.take(rows);
    });
  }
  [[nodiscard]] bool is_full() const override { return answer_.is_full(); }
  void finish(collect::Losses& losses) override { answer_.end(losses); }

 private:
  plan::Plan plan_;
  ToSink to_sink_;
  answer::Answer answer_;
};

// Of what happened before the end of a pane that was given, nodes may have seen some only in the
// next one: when it is read from the rings decides, and a busy machine takes its time.
constexpr int64_t kReadLateNs = kSecond;

class JoinedEvents final : public AnsweredRows {
 public:
  JoinedEvents(plan::Joined joined, output::RowSink& sink, bool has_intervals)
      : joined_(std::move(joined)),
        plan_(plan::plain(joined_.stages[0].rest)),
        sink_(sink),
        to_sink_(sink),
        answer_(plan_, 0, to_sink_),
        joins_(joined_, {.slack_ns = kReadLateNs}),
        rows_(plan_.query.values.size()),
        has_intervals_(has_intervals && counts() && !plan_.query.window) {
    if (plan_.query.window) windows_.emplace(plan_.query, 0);
  }

  [[nodiscard]] std::span<const aggregate::Column> columns() const override {
    return answer_.columns();
  }
  [[nodiscard]] output::RowMode mode() const override {
    return counts() ? output::RowMode::Table : output::RowMode::Stream;
  }
  Expected<void> take_all(const Table& table) override { return take(table, {}); }
  Expected<void> take(const Table& table, const output::Interval& pane) override;
  [[nodiscard]] bool is_full() const override { return !counts() && answer_.is_full(); }
  void finish(collect::Losses& losses) override;

 private:
  [[nodiscard]] bool counts() const { return plan_.query.shape == query::Shape::Groups; }
  void join(answer::RowBatch& events);
  void push();
  void give_windows(int64_t until_ns);
  void give(const std::vector<stream::Given>& given);
  void end_interval(const output::Interval& interval);

  plan::Joined joined_;
  plan::Plan plan_;
  output::RowSink& sink_;
  ToSink to_sink_;
  answer::Answer answer_;
  answer::TimeJoins joins_;
  answer::RowBatch rows_;
  std::optional<session::TimeWindows> windows_;
  bool has_intervals_;
  output::Interval last_;  // That was given.
  bool has_begun_ = false;
};

void JoinedEvents::push() {
  if (!rows_.empty() && !is_full()) answer_.take(rows_);
  rows_.clear();
}

void JoinedEvents::join(answer::RowBatch& events) {
  size_t at = 0;
  while (at < events.size()) {
    at = joins_.take(events, {.begin = at, .end = events.size()}, rows_);
    push();
  }
}

Expected<void> JoinedEvents::take(const Table& table, const output::Interval& pane) {
  const bool is_first = !std::exchange(has_begun_, true);
  if (is_first && windows_) windows_->begin(pane.end_ns);
  // What a node's clock or program says of the future ends what others wait for no sooner.
  joins_.set_now(pane.end_ns);
  CLEW_TRY(answer::give_events(table, joined_.events,
                               [this](answer::RowBatch& events) { join(events); }));
  for (bool is_done = false; !is_done; push())
    is_done = joins_.pass(pane.end_ns, rows_);
  if (windows_) give_windows(stream::plus(pane.end_ns, -kReadLateNs - plan::lag_of(joined_, 0)));
  if (has_intervals_) end_interval(pane);
  return {};
}

void JoinedEvents::end_interval(const output::Interval& interval) {
  last_ = interval;
  answer_.take(joins_.counted());
  joins_.forget_counted();
  sink_.end_interval(interval);
}

void JoinedEvents::give_windows(int64_t until_ns) {
  windows_->add(joins_.counted());
  joins_.forget_counted();
  give(windows_->advance(until_ns));
}

void JoinedEvents::give(const std::vector<stream::Given>& given) {
  if (given.empty()) return;
  for (const stream::Given& each : given) {
    to_sink_.set_version(each.version);
    answer_.take(each.table);
  }
  if (!answer_.waits_for_end()) sink_.end_interval(windows_->interval_of(given));
}

void JoinedEvents::finish(collect::Losses& losses) {
  for (bool is_done = false; !is_done; push())
    is_done = joins_.drain(rows_);
  if (windows_) {
    windows_->add(joins_.counted());
    give(windows_->finish());
    collect::count_cause(losses.dropped, collect::kDroppedLate, windows_->late());
    collect::count_cause(losses.dropped, collect::kDroppedWindowRows, windows_->dropped());
  } else if (has_intervals_) {
    // What had waited for a partner.
    if (joins_.counted().size() != 0) {
      end_interval({.number = last_.number + 1,
                    .partial = true,
                    .begin_ns = last_.end_ns,
                    .end_ns = last_.end_ns});
    }
  } else if (counts()) {
    answer_.take(joins_.counted());
  }
  const answer::TimeJoinCounts counts = joins_.counts();
  collect::count_cause(losses.missed, collect::kMissedTooLate, counts.late);
  collect::count_cause(losses.dropped, collect::kDroppedHeld, counts.forgotten);
  collect::count_cause(losses.dropped, collect::kDroppedPartners, counts.cut);
  to_sink_.forget_version();
  answer_.end(losses);
}

}  // namespace

std::unique_ptr<AnsweredRows> single_events(query::Query query, output::RowSink& sink) {
  return std::make_unique<SingleEvents>(std::move(query), sink);
}

std::unique_ptr<AnsweredRows> joined_events(plan::Joined joined, output::RowSink& sink,
                                            bool has_intervals) {
  return std::make_unique<JoinedEvents>(std::move(joined), sink, has_intervals);
}

}  // namespace clew::cluster
