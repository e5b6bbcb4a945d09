// SPDX-License-Identifier: Apache-2.0
// The loop in which sources answer a query: one for live processes and the kernel, for files, and
// for tests. It waits for the sources, reads their events, lets ticks fire, closes intervals, and
// pushes finished rows to a sink until the query's end.
//
//   begin(), answer(), stop(), finish()     each once, all by one thread
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/table.h"
#include "answer/answer.h"
#include "answer/event_table.h"
#include "answer/joins.h"
#include "answer/operator.h"
#include "answer/outstanding.h"
#include "answer/row_batch.h"
#include "answer/row_joiner.h"
#include "answer/time_joins.h"
#include "base/error.h"
#include "collect/losses.h"
#include "output/row_sink.h"
#include "plan/joined.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "query/query.h"
#include "session/event_flow.h"
#include "session/idle.h"
#include "session/loop.h"
#include "session/numbers.h"
#include "session/pane_taker.h"
#include "session/source.h"
#include "session/time_windows.h"

namespace clew::session {

// All is borrowed until the session is gone.
struct Input {
  const plan::Plan& plan;  // Of the events.
  // At least one. Processes come before what counts their events in
  // the kernel: they are stopped last and left first.
  std::vector<Source*> sources;
  const Numbers& numbers;
  output::RowSink& sink;
  // Of the events, where they go through a file; else a flow of its own.
  EventFlow& flow;
  int64_t epoch_ns = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC, of the events.
  // Of the events, and of the sources' now(). Of windows alone.
  plan::Clock clock{};
  // The sources have several members, which have to begin and end at one moment.
  bool has_window = false;
  collect::Losses beside{};  // What else is missing.
  // Joins of the events, where `plan` is that of plan::Joined::events; or null.
  const plan::Joined* joined = nullptr;
  causal::Profiles* profiles = nullptr;      // Of the processes whose events are joined, or null.
  answer::JoinObserver* observer = nullptr;  // Of these, or null.
  std::function<causal::SocketNumbers()> socket_numbers{};  // As they are; or none.
  PaneTaker* panes = nullptr;  // Gets groups, or events as tables, instead of the sink; or null.
  PaneClock pane_clock{};
  std::optional<answer::EventLayout> events{};  // Its rows, where it gets single events.
  // The time of events that happen now, in ns; none: it passes by the events alone, as in a file.
  std::function<int64_t()> event_clock{};
  std::optional<IdleLimit> idle{};  // It ends by itself; none: it does not.
  std::function<void(std::string_view)> warn = [](std::string_view) {};
};

// How many of the events that are missing may have been an edge between others.
uint64_t lost_edges(const collect::Losses& losses, const plan::Joined& joined);

class Session {
 public:
  explicit Session(Input input);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // All sources count from now on.
  Expected<void> begin();
  // Until the query's end, until all sources are gone, until `stop_descriptor` is readable.
  Expected<void> answer(int stop_descriptor);
  // Keeps the first fault for finish(), and tells it beside the answer.
  void note(Expected<void> done);
  // Takes the probes out; no source has more from now on.
  Expected<void> stop();
  // The rest of the answer. Errors: what was noted.
  Expected<void> finish();

  // To the sink, so far.
  [[nodiscard]] uint64_t rows_given() const { return to_sink_.rows_given(); }
  // Of all sources so far, and what is beside them.
  collect::Losses losses();
  // Without what is counted where they are joined: whoever reads their file joins them anew.
  collect::Losses losses_of_events();

 private:
  using Time = std::chrono::steady_clock;
  // A query source that fires in the tracer, and when it does next.
  struct Tick {
    uint16_t source;
    std::chrono::nanoseconds period;
    Time::time_point next;
  };

  void schedule();
  [[nodiscard]] Time::time_point next_moment();
  Expected<void> take_turn();
  [[nodiscard]] bool finished();
  [[nodiscard]] bool is_idle();
  void look_at_counts();
  void tell_losses();
  void tell_late();
  void tell_unknown();
  void disarm_spinning();
  void fire_ticks();
  void fire_all(query::SourceKind kind);
  void fire(uint16_t source);
  Expected<void> read_events(bool is_last);
  Expected<void> push_events(bool is_last);
  void push(answer::RowBatch& rows);
  void find_open_calls();
  Expected<aggregate::Table> merged(bool interval);
  aggregate::Table joined_table(bool interval);
  [[nodiscard]] uint64_t passed() const;
  void note_lost_events();
  void join(answer::RowBatch& rows, bool is_beside_loss);
  [[nodiscard]] size_t due();
  void join_first(size_t count);
  void join_due(std::chrono::steady_clock::time_point round);
  void make_joins();
  void pass_time();
  void note_round();
  [[nodiscard]] int64_t complete_moment() const;
  [[nodiscard]] int64_t end_moment() const;
  void give_outstanding(int64_t at_ns);
  void join_rest();
  Expected<void> push_groups(bool interval);
  Expected<void> end_interval(bool is_partial);
  Expected<aggregate::Table> groups(bool interval);
  void begin_pane(int64_t pane);
  Expected<void> end_pane();
  [[nodiscard]] bool has_events() const;
  [[nodiscard]] bool is_in_order() const;
  [[nodiscard]] int64_t time_now() const;
  [[nodiscard]] int64_t complete_until();
  [[nodiscard]] Time::time_point next_pane();
  Expected<void> give_ended();
  Expected<void> give_windows(int64_t until);
  Expected<void> give_last_windows();
  void give(const std::vector<stream::Given>& given);
  [[nodiscard]] bool interval_is_over() const;
  // No more rows of single events are wanted.
  [[nodiscard]] bool is_full() const { return !counts() && answer_.is_full(); }
  [[nodiscard]] bool counts() const { return query_.shape == query::Shape::Groups; }

  // The last operator: gives finished rows to the sink.
  class ToSink final : public answer::Operator {
   public:
    explicit ToSink(output::RowSink& sink) : sink_(sink) {}
    void take(answer::RowBatch& rows) override;
    void finish() override {}
    // A last column of the rows that follow.
    void set_version(uint64_t version) { version_ = static_cast<int64_t>(version); }
    void forget_version() { version_.reset(); }
    [[nodiscard]] uint64_t rows_given() const { return rows_given_; }

   private:
    output::RowSink& sink_;
    std::optional<int64_t> version_;
    std::vector<aggregate::Value> row_;
    uint64_t rows_given_ = 0;
  };

  Input input_;
  Loop loop_;
  std::unique_ptr<answer::RowJoiner> joins_;  // One of these; or none.
  answer::Joins* by_cause_ = nullptr;
  answer::TimeJoins* by_time_ = nullptr;
  answer::Outstanding* outstanding_ = nullptr;
  plan::Plan joined_plan_;     // What is done with joined rows.
  const plan::Plan& plan_;     // What is answered: that, or the plan of the events.
  const query::Query& query_;  // Its.
  ToSink to_sink_;
  answer::Answer answer_;
  std::optional<answer::EventTable> events_;  // Of a pane, where these are taken.
  answer::RowBatch rows_;                     // On their way from the sources.
  answer::RowBatch joined_rows_;
  answer::RowBatch held_;  // Of events, until what may have been before them is there.
  std::chrono::steady_clock::time_point held_since_{};  // When the last one came.
  // With joins: how many events were lost so far, and the time up to which some may have been.
  uint64_t lost_events_ = 0;
  std::optional<uint64_t> lost_until_;
  bool has_more_ = false;    // Rows that could be pushed at once.
  bool is_drained_ = false;  // All events that the flow had are taken.
  bool is_ended_ = false;    // Nothing comes any more.
  // With joins by time, and of what is outstanding: when the last two rounds of reading began.
  std::optional<int64_t> round_ns_;
  std::optional<int64_t> round_before_ns_;
  Time::time_point begun_;
  uint64_t end_ticks_ = 0;
  double window_ms_ = 0;
  // With windows of time: the clock of the events before the last rounds of reading, and of the
  // last event that was taken.
  std::optional<TimeWindows> windows_;
  std::optional<uint64_t> round_start_;
  std::optional<uint64_t> complete_ticks_;
  std::optional<uint64_t> taken_ticks_;
  std::optional<Time::time_point> end_;
  std::optional<Time::time_point> interval_end_;
  uint64_t intervals_ = 0;
  int64_t interval_begin_ns_ = 0;  // Of the time of day.
  int64_t pane_ = 0;               // Is counted now.
  bool is_last_partial_ = false;
  std::vector<Tick> ticks_;
  std::optional<Idle> idle_;
  std::optional<std::string> why_idle_;          // It is over for that.
  uint64_t rows_seen_ = 0;                       // By it: rows_given(),
  std::optional<aggregate::Table> counts_seen_;  // and of counts that are given at the end.
  answer::RowBatch open_rows_;
  std::optional<Error> fault_;
};

}  // namespace clew::session
