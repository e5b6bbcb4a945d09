// SPDX-License-Identifier: Apache-2.0
#include "session/session.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <x86intrin.h>

#include "base/assert.h"
#include "base/clock_ns.h"
#include "plan/evaluate.h"

namespace clew::session {
namespace {

using query::SourceKind;
using std::chrono::nanoseconds;

constexpr EventFlow::Share kUsual{.events = answer::RowBatch::kRowsUsual, .words = SIZE_MAX};
// What a sink that is ready takes without waiting: their text fits into a page of a pipe.
constexpr EventFlow::Share kOfReadySink{.events = 16, .words = 128};

// Of a pane. The first that are wanted are among the first of each session.
answer::EventLimits limits_of_events(const query::Query& query, int64_t width_ns) {
  constexpr size_t kBytesOfSecond = size_t{8} << 20;
  constexpr size_t kBytesMost = size_t{32} << 20;
  const double seconds = static_cast<double>(width_ns) / 1e9;
  answer::EventLimits limits;
  limits.bytes = static_cast<size_t>(
      std::clamp(seconds * kBytesOfSecond, double{1U << 20}, double{kBytesMost}));
  if (query.having.empty()) limits.rows = query.take;
  return limits;
}

}  // namespace

Session::Session(Input input)
    : input_(std::move(input)),
      loop_({input_.sources.begin(), input_.sources.end()}),
      joined_plan_(input_.joined == nullptr ? plan::Plan{}
                                            : plan::plain(input_.joined->stages[0].rest)),
      plan_(input_.joined == nullptr ? input_.plan : joined_plan_),
      query_(plan_.query),
      to_sink_(input_.sink),
      answer_(plan_, input_.epoch_ns, to_sink_),
      rows_(input_.plan.query.values.size()),
      joined_rows_(query_.values.size()),
      held_(rows_.width()),
      open_rows_(input_.plan.query.values.size()) {
  if (input_.joined != nullptr) make_joins();
  if (input_.panes != nullptr && input_.events) {
    events_.emplace(query_, *input_.events, input_.pane_clock.offset_ns,
                    limits_of_events(query_, input_.pane_clock.panes.width_ns));
  }
  if (query_.window && input_.panes == nullptr) windows_.emplace(query_, input_.epoch_ns);
}

void Session::make_joins() {
  if (query::is_outstanding(input_.joined->stages[0].query)) {
    auto made = std::make_unique<answer::Outstanding>(*input_.joined);
    outstanding_ = made.get();
    joins_ = std::move(made);
    return;
  }
  if (query::joins_by_time(input_.joined->stages[0].query)) {
    auto made = std::make_unique<answer::TimeJoins>(*input_.joined);
    by_time_ = made.get();
    joins_ = std::move(made);
    return;
  }
  auto made = std::make_unique<answer::Joins>(*input_.joined, input_.profiles, answer::JoinLimits{},
                                              input_.observer);
  by_cause_ = made.get();
  joins_ = std::move(made);
}

// What is armed one after the other begins at one moment, and ends so.
Expected<void> Session::begin() {
  CLEW_ASSERT(!input_.sources.empty());
  uint64_t begin_ticks = 0;
  if (input_.has_window) {
    for (Source* each : input_.sources)
      each->begin_window();
    begin_ticks = __rdtsc();
  }
  begun_ = Time::now();
  for (Source* each : input_.sources)
    CLEW_TRY(each->start(begin_ticks));
  if (by_cause_ != nullptr && input_.socket_numbers) by_cause_->begin(input_.socket_numbers());
  if (!input_.has_window) return {};
  for (Source* each : input_.sources)
    each->settle_window();
  return {};
}

// --- while it runs -----------------------------------------------------------------------------

Expected<void> Session::answer(int stop_descriptor) {
  schedule();
  input_.sink.begin(answer_.columns(), counts() ? output::RowMode::Table : output::RowMode::Stream);
  fire_all(SourceKind::Begin);
  while (!finished() && loop_.wait(stop_descriptor, next_moment())) {
    CLEW_TRY(take_turn());
  }
  return {};
}

void Session::schedule() {
  if (input_.idle) idle_.emplace(*input_.idle, Time::now());
  if (query_.for_ns) end_ = begun_ + nanoseconds(*query_.for_ns);
  if (input_.panes != nullptr) {
    begin_pane(input_.pane_clock.pane_at(clock_ns(CLOCK_MONOTONIC)));
  } else if (query_.every_ns) {
    interval_end_ = begun_ + nanoseconds(*query_.every_ns);
  }
  if (windows_ && !is_in_order()) windows_->begin(time_now());
  interval_begin_ns_ = clock_ns(CLOCK_MONOTONIC) + input_.epoch_ns;
  for (size_t i = 0; i < query_.sources.size(); ++i) {
    if (query_.sources[i].kind != SourceKind::Tick) continue;
    const nanoseconds period(query_.sources[i].period_ns);
    CLEW_ASSERT(period.count() > 0);  // Else a turn never ends.
    ticks_.push_back(
        {.source = static_cast<uint16_t>(i), .period = period, .next = begun_ + period});
  }
}

bool Session::finished() {
  if (end_ && Time::now() >= *end_) return true;
  if (is_full() || is_idle()) return true;
  if (counts() && query_.for_events) {
    if (passed() >= *query_.for_events) return true;
  }
  return std::all_of(input_.sources.begin(), input_.sources.end(),
                     [](const Source* each) { return each->gone(); });
}

bool Session::is_idle() {
  if (!idle_) return false;
  const Time::time_point now = Time::now();
  if (std::exchange(rows_seen_, rows_given()) != rows_given()) idle_->note(now);
  const bool is_at_end = counts() && !query_.every_ns && !windows_ && input_.panes == nullptr;
  if (is_at_end && (idle_->wants_look(now) || idle_->is_quiet(now))) look_at_counts();
  why_idle_ = idle_->why_over(now);
  return why_idle_.has_value();
}

// Counts whose rows come at the end: something was counted, or not.
void Session::look_at_counts() {
  Expected<aggregate::Table> counts = groups(false);
  if (!counts) return note(tl::unexpected(std::move(counts).error()));
  if (!counts_seen_ || !(*counts_seen_ == *counts)) idle_->note(Time::now());
  counts_seen_ = std::move(*counts);
}

uint64_t Session::passed() const {
  if (joins_) return joins_->passed();
  return std::accumulate(input_.sources.begin(), input_.sources.end(), uint64_t{0},
                         [](uint64_t sum, Source* each) { return sum + each->passed(); });
}

// At which something is to be done whatever the sources say.
Session::Time::time_point Session::next_moment() {
  if (has_more_) return Time::now();
  Time::time_point next = end_.value_or(Time::time_point::max());
  // Once what is held can be joined.
  if (!held_.empty())
    next = std::min(next, held_since_ + std::chrono::nanoseconds(2 * joins_->looks_ahead_ns()));
  if (interval_end_) next = std::min(next, *interval_end_);
  if (windows_ && !is_in_order()) next = std::min(next, next_pane());
  for (const Tick& tick : ticks_)
    next = std::min(next, tick.next);
  return next;
}

Expected<void> Session::take_turn() {
  CLEW_TRY(loop_.give_turns());
  CLEW_TRY(read_events(false));
  fire_ticks();
  disarm_spinning();
  if (loop_.keep_house()) tell_losses();
  if (windows_) CLEW_TRY(give_ended());
  // The one that ends with the session is closed there, whole.
  const bool is_last = end_ && interval_end_ && *interval_end_ >= *end_;
  input_.sink.flush();
  if (!interval_is_over() || is_last) return {};
  if (input_.panes != nullptr) return end_pane();
  interval_end_ = *interval_end_ + nanoseconds(query_.every_ns.value_or(0));
  return end_interval(false);
}

void Session::tell_losses() {
  if (input_.sink.wants_losses()) input_.sink.losses_so_far(losses());
}

void Session::disarm_spinning() {
  for (const collect::DisarmedProbe& disarmed : loop_.disarm_spinning()) {
    input_.warn(collect::describe(disarmed));
    input_.sink.disarmed(disarmed);
  }
}

void Session::fire_ticks() {
  for (Tick& tick : ticks_) {
    while (tick.next <= Time::now()) {
      fire(tick.source);
      tick.next += tick.period;
    }
  }
}

void Session::fire_all(SourceKind kind) {
  for (size_t i = 0; i < query_.sources.size(); ++i) {
    if (query_.sources[i].kind == kind) fire(static_cast<uint16_t>(i));
  }
}

void Session::fire(uint16_t source) {
  input_.sources[0]->fire(source, clock_ns(CLOCK_MONOTONIC), rows_);
  push(rows_);
}

// --- rows --------------------------------------------------------------------------------------

void Session::ToSink::take(answer::RowBatch& rows) {
  rows_given_ += rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<aggregate::Value> row = rows.at(i);
    if (!version_) {
      sink_.row(row);
      continue;
    }
    row_.assign(row.begin(), row.end());
    row_.emplace_back(*version_);
    sink_.row(row_);
  }
}

// Of single events; they are taken out of `rows`.
void Session::push(answer::RowBatch& rows) {
  if (events_) return events_->add(rows);
  if (!rows.empty()) answer_.take(rows);
  rows.clear();
}

void Session::join(answer::RowBatch& rows, bool is_beside_loss) {
  if (is_beside_loss) {
    join_first(held_.size());
    by_cause_->skip(rows);
    return rows.clear();
  }
  if (!rows.empty()) held_since_ = Time::now();
  held_.append(rows);
  // A few at a time: those that are held are looked at each time.
  constexpr size_t kFew = 64;
  const size_t count = due();
  if (joins_->looks_ahead_ns() == 0 || count >= kFew) join_first(count);
}

// How many of the events that are held have all there that may have been before them.
size_t Session::due() {
  if (joins_->looks_ahead_ns() == 0 || held_.empty()) return held_.size();
  const auto time = [this](size_t row) {
    return static_cast<int64_t>(plan::bits_of(held_.at(row)[plan::Joined::kTime]));
  };
  const int64_t until = time(held_.size() - 1) - joins_->looks_ahead_ns();
  size_t count = held_.size();
  while (count > 0 && time(count - 1) > until)
    --count;
  return count;
}

// Behind a round that began then and has read all that there was: what nothing followed by then is
// not waited for.
void Session::join_due(Time::time_point round) {
  const bool is_quiet = round - held_since_ >= std::chrono::nanoseconds(joins_->looks_ahead_ns());
  join_first(is_quiet ? held_.size() : due());
}

void Session::join_first(size_t count) {
  size_t at = 0;
  while (at < count && !is_full()) {
    at = joins_->take(held_, {.begin = at, .end = count}, joined_rows_);
    push(joined_rows_);
  }
  held_.drop_front(count);
}

// Behind a round of reading: what happened before the round before it has come
// (collect/event_merge.h).
void Session::pass_time() {
  if (!is_drained_ || !round_before_ns_) return;
  bool is_done = false;
  while (!is_done && !is_full()) {
    is_done = by_time_->pass(*round_before_ns_, joined_rows_);
    push(joined_rows_);
  }
}

// Nothing comes any more.
void Session::join_rest() {
  join_first(held_.size());
  bool is_done = by_time_ == nullptr;
  while (!is_done && !is_full()) {
    is_done = by_time_->drain(joined_rows_);
    push(joined_rows_);
  }
}

// Behind a round of reading: what was lost until now stood among the events that it has read, or
// comes.
void Session::note_lost_events() {
  uint64_t lost = 0;
  for (Source* each : input_.sources)
    lost += lost_edges(each->losses(), *input_.joined);
  if (std::exchange(lost_events_, lost) != lost) lost_until_ = input_.sources[0]->now();
}

// No event is of a later time than that of the round that reads it.
void Session::note_round() {
  const bool is_timed = by_time_ != nullptr || outstanding_ != nullptr;
  if (!is_timed || !input_.event_clock) return;
  round_before_ns_ = std::exchange(round_ns_, input_.event_clock());
  if (by_time_ != nullptr) by_time_->set_now(*round_ns_);
  if (outstanding_ != nullptr) outstanding_->set_now(*round_ns_);
}

// All that happened before has been taken: an event is read in the round behind its time, or late.
int64_t Session::complete_moment() const {
  const bool is_read = is_drained_ && round_before_ns_;
  const int64_t until = is_read ? *round_before_ns_ : outstanding_->latest();
  return std::max(until, INT64_MIN + plan::kLateNs) - plan::kLateNs;
}

// All rows of a moment, which are an answer by themselves.
void Session::give_outstanding(int64_t at_ns) {
  outstanding_->ask(at_ns);
  bool is_done = false;
  while (!is_done && !is_full()) {
    is_done = outstanding_->give(joined_rows_);
    push(joined_rows_);
  }
  if (!counts()) answer_.end_rows();
}

Expected<void> Session::read_events(bool is_last) {
  if (!has_events()) return {};
  collect::EventBatch round;
  const uint64_t start = input_.sources[0]->now();
  const Time::time_point begun = Time::now();
  note_round();
  for (Source* each : input_.sources)
    CLEW_TRY(each->read_events(round));
  if (by_cause_ != nullptr) note_lost_events();
  complete_ticks_ = std::exchange(round_start_, start);
  if (is_in_order()) {
    input_.flow.add_in_order(std::move(round));
  } else {
    CLEW_TRY(input_.flow.add(round, start, is_last));
  }
  CLEW_TRY(push_events(is_last));
  if (joins_ && !is_last) join_due(begun);
  if (by_time_ != nullptr && !is_last) pass_time();
  return {};
}

// What is kept in a file waits there for a sink, or names of stacks, that are slower than the
// events: those that probes write meanwhile come first.
Expected<void> Session::push_events(bool is_last) {
  constexpr std::chrono::milliseconds kTurn{1};
  const bool may_wait = input_.flow.is_kept() && !is_last && !counts();
  const EventFlow::Share most = may_wait ? kOfReadySink : kUsual;
  const Time::time_point until = Time::now() + kTurn;
  has_more_ = false;
  is_drained_ = false;
  while (!is_full() && (!may_wait || input_.sink.ready())) {
    const collect::EventRange range = CLEW_TRY(input_.flow.take(most));
    is_drained_ = range.empty();
    if (is_drained_) break;
    const collect::EventBatch& events = input_.flow.events();
    Source* const source = input_.numbers.source_of(events.at(range.begin));
    if (source == nullptr) {
      return fail(ErrorCode::Io, "events of nobody: somebody else writes to the file of events");
    }
    const bool is_beside_loss = lost_until_ && events.at(range.begin).time <= *lost_until_;
    source->take_events(events, range, rows_);
    if (joins_) {
      join(rows_, is_beside_loss);
    } else {
      push(rows_);
    }
    taken_ticks_ = events.at(range.end - 1).time;
    if (windows_ && is_in_order()) CLEW_TRY(give_ended());
    if (may_wait) input_.sink.flush();
    has_more_ = may_wait && Time::now() >= until;
    if (has_more_) return {};
  }
  if (joins_ && is_last) join_rest();
  return {};
}

Expected<aggregate::Table> Session::merged(bool interval) {
  const auto part = [interval](Source& source) {
    return interval ? source.interval() : source.total();
  };
  aggregate::Table table = CLEW_TRY(part(*input_.sources[0]));
  for (Source* each : std::span(input_.sources).subspan(1)) {
    const aggregate::Table some = CLEW_TRY(part(*each));
    CLEW_TRY(table.merge(some));
  }
  return table;
}

aggregate::Table Session::joined_table(bool interval) {
  aggregate::Table table = joins_->counted();
  if (interval) joins_->forget_counted();
  return table;
}

Expected<aggregate::Table> Session::groups(bool interval) {
  if (events_) return events_->take();
  if (joins_) return joined_table(interval);
  return merged(interval);
}

Expected<void> Session::push_groups(bool interval) {
  answer_.take(CLEW_TRY(groups(interval)));
  return {};
}

bool Session::interval_is_over() const {
  return interval_end_ && Time::now() >= *interval_end_;
}

bool Session::has_events() const {
  return std::any_of(input_.sources.begin(), input_.sources.end(),
                     [](const Source* each) { return each->has_events(); });
}

bool Session::is_in_order() const {
  return input_.sources.size() == 1 && input_.sources[0]->is_in_order();
}

Expected<void> Session::end_interval(bool is_partial) {
  if (joins_) join_first(held_.size());
  if (outstanding_ != nullptr) give_outstanding(is_ended_ ? end_moment() : complete_moment());
  if (counts()) CLEW_TRY(push_groups(true));
  const int64_t now_ns = clock_ns(CLOCK_MONOTONIC) + input_.epoch_ns;
  tell_losses();
  input_.sink.end_interval({.number = ++intervals_,
                            .partial = is_partial,
                            .begin_ns = std::exchange(interval_begin_ns_, now_ns),
                            .end_ns = now_ns});
  input_.sink.flush();
  return {};
}

// --- panes ---------------------------------------------------------------------------------------

void Session::begin_pane(int64_t pane) {
  pane_ = pane;
  interval_end_ = Time::time_point(nanoseconds(input_.pane_clock.end_of(pane)));
}

Expected<void> Session::end_pane() {
  if (joins_) join_first(held_.size());
  const aggregate::Table table = CLEW_TRY(groups(true));
  CLEW_TRY(input_.panes->take(pane_, table, losses()));
  begin_pane(std::max(pane_ + 1, input_.pane_clock.pane_at(clock_ns(CLOCK_MONOTONIC))));
  return {};
}

// --- the end -----------------------------------------------------------------------------------

// Where one member is traced, when its probes are gone: then all that returned is counted. Others
// end at their window's end.
void Session::find_open_calls() {
  const uint64_t now = input_.has_window ? end_ticks_ : __rdtsc();
  for (Source* each : input_.sources)
    each->take_open_calls(now, open_rows_);
}

Expected<void> Session::stop() {
  is_last_partial_ = !interval_is_over();
  if (input_.has_window) {
    end_ticks_ = __rdtsc();
    std::for_each(input_.sources.rbegin(), input_.sources.rend(),
                  [this](Source* each) { each->stop(end_ticks_); });
    find_open_calls();
    window_ms_ = std::chrono::duration<double, std::milli>(Time::now() - begun_).count();
  }
  for (Source* each : input_.sources)
    note(each->detach());
  if (!input_.has_window) find_open_calls();
  // No sooner: who does not read the answer may not read this.
  if (why_idle_) input_.warn(*std::exchange(why_idle_, std::nullopt));
  CLEW_TRY(read_events(true));
  push(open_rows_);
  return {};
}

// When the probes were gone, as events have it; of a file the last event.
int64_t Session::end_moment() const {
  return std::max(round_ns_.value_or(INT64_MIN), outstanding_->latest());
}

Expected<void> Session::finish() {
  fire_all(SourceKind::End);
  is_ended_ = true;
  if (outstanding_ != nullptr) outstanding_->drain();
  tell_late();
  tell_unknown();
  if (input_.panes != nullptr) {
    CLEW_TRY(end_pane());
  } else if (windows_) {
    CLEW_TRY(give_last_windows());
  } else if (query_.every_ns) {
    CLEW_TRY(end_interval(is_last_partial_));
  } else {
    if (outstanding_ != nullptr) give_outstanding(end_moment());
    if (counts()) CLEW_TRY(push_groups(false));
  }
  if (input_.panes == nullptr) {
    to_sink_.forget_version();
    answer_.end(input_.beside);
  }
  input_.sink.finish(losses());
  input_.sink.flush();
  if (fault_) return tl::unexpected(*fault_);
  return {};
}

// The programs whose messages bring no request into them.
void Session::tell_unknown() {
  if (by_cause_ == nullptr || input_.profiles == nullptr) return;
  std::map<std::pair<std::string, bool>, uint64_t> messages;  // By program.
  for (const auto& [process, count] : by_cause_->counts().sockets.unknown)
    messages[{input_.profiles->name_of(process), input_.profiles->is_guessed(process)}] += count;
  for (const auto& [program, count] : messages) {
    const auto& [name, is_guessed] = program;
    const std::string_view why =
        is_guessed ? "what it does with them is known by a guess alone, which 'with cause >= "
                     "heuristic' believes"
                   : "no [[program]] of a vocabulary says what it does with them";
    input_.warn(fmt::format("{} read {} message{}, and {}: requests end there", name, count,
                            count == 1 ? "" : "s", why));
  }
}

// Of rows alone: counts have no order.
void Session::tell_late() {
  const uint64_t late = counts() ? 0 : input_.flow.late();
  if (late == 0) return;
  input_.warn(fmt::format("{} event{} came so late that later ones stand before {}", late,
                          late == 1 ? "" : "s", late == 1 ? "it" : "them"));
}

// The answer comes first: what went wrong is a loss beside it, and the error after it.
void Session::note(Expected<void> done) {
  if (done) return;
  input_.beside.lost.push_back(done.error().message);
  if (!fault_) fault_ = std::move(done).error();
}

}  // namespace clew::session
