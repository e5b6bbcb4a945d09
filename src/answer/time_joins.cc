// SPDX-License-Identifier: Apache-2.0
#include "answer/time_joins.h"

#include <algorithm>
#include <string>
#include <variant>

#include "base/assert.h"
#include "plan/evaluate.h"

namespace clew::answer {

using aggregate::Value;
using plan::JoinStage;

namespace {

// Joined rows are selected so many at a time.
constexpr size_t kFew = 256;

stream::Side side_of(query::JoinSide side) {
  switch (side) {
    case query::JoinSide::Either:
      return stream::Side::Either;
    case query::JoinSide::Before:
      return stream::Side::Before;
    case query::JoinSide::After:
      return stream::Side::After;
  }
  return stream::Side::Either;
}

stream::Choice choice_of(query::JoinFilter filter) {
  switch (filter) {
    case query::JoinFilter::All:
      return stream::Choice::All;
    case query::JoinFilter::First:
    case query::JoinFilter::FirstN:
      return stream::Choice::First;
    case query::JoinFilter::MostRecent:
    case query::JoinFilter::MostRecentN:
      return stream::Choice::Last;
  }
  return stream::Choice::All;
}

int64_t less(int64_t time, int64_t by) {
  int64_t result = 0;
  return __builtin_sub_overflow(time, by, &result) ? std::numeric_limits<int64_t>::min() : result;
}

}  // namespace

TimeJoins::TimeJoins(const plan::Joined& joined, TimeJoinLimits limits)
    : joined_(joined), limits_(limits) {
  for (size_t i = 0; i < joined.stages.size(); ++i) {
    auto rest = std::make_unique<JoinRest>(joined.stages[i].rest, i == 0);
    const size_t width = rest->width();
    stages_.push_back({.rest = std::move(rest),
                       .joins = {},
                       .joined = RowBatch(joined.stages[i].width),
                       .selected = RowBatch(width),
                       .asker = {}});
  }
  for (size_t i = 0; i < joined.stages.size(); ++i) {
    const auto& streams = joined.stages[i].streams;
    for (size_t s = 0; s < streams.size(); ++s) {
      if (streams[s].subquery) stages_[*streams[s].subquery].asker = {i, s};
    }
  }
  add_joins(0);
}

TimeJoins::~TimeJoins() = default;

void TimeJoins::add_joins(size_t at) {
  const JoinStage& stage = joined_.stages[at];
  for (size_t i = 0; i < stage.joins.size(); ++i) {
    const JoinStage::Stream& stream = stage.streams[i + 1];
    const query::Within& within = *stage.joins[i].within;
    Join made;
    made.left_lag_ns = plan::lag_of(joined_, at, i);
    if (stream.subquery) {
      made.right_lag_ns = plan::lag_of(joined_, *stream.subquery);
      add_joins(*stream.subquery);
    }
    made.left_key.resize(within.other.size());
    made.right_key.resize(within.joined.size());
    made.step = std::make_unique<Step>(*this, at, i);
    const stream::TemporalShape shape{.left_width = stream.begin,
                                      .right_width = stream.columns.size(),
                                      .left_moments = i + 1,
                                      .left_of = stage.joins[i].after,
                                      .keys = within.joined.size(),
                                      .within_ns = within.ns,
                                      .side = side_of(within.side),
                                      .is_outer = stage.joins[i].left,
                                      .choice = choice_of(stage.joins[i].filter),
                                      .count = stage.joins[i].count};
    made.join = std::make_unique<stream::TemporalJoin>(shape, limits_.sides, *made.step);
    stages_[at].joins.push_back(std::move(made));
  }
}

// --- events --------------------------------------------------------------------------------------

size_t TimeJoins::take(RowBatch& events, Part part, RowBatch& rows) {
  rows_ = &rows;
  size_t at = part.begin;
  while (at < part.end && !is_full()) {
    if (!pass_stage(0, until_)) break;
    take_event(events.at(at++));
  }
  answer();
  return at;
}

void TimeJoins::take_event(Values event) {
  const uint64_t source = plan::bits_of(event[plan::Joined::kSource]);
  if (source >= joined_.roles.size()) return;  // A recording can say anything.
  const auto time = static_cast<int64_t>(plan::bits_of(event[plan::Joined::kTime]));
  if (time < until_) ++counts_.late;
  const stream::Moment moment{.time_ns = time, .number = number_++};
  budget_ = limits_.each;
  for (const plan::JoinRole& role : joined_.roles[source]) {
    const std::vector<size_t>& columns = joined_.stages[role.stage].streams[role.stream].columns;
    values_.resize(columns.size());
    for (size_t i = 0; i < columns.size(); ++i)
      values_[i] = event[columns[i]];
    enter(role.stage, role.stream, values_, moment);
  }
  if (budget_.is_cut) ++counts_.cut;
  until_ = std::max(until_, less(std::min(time, now_), limits_.slack_ns));
}

void TimeJoins::enter(size_t stage, uint16_t stream, Values values, const stream::Moment& moment) {
  if (stream == 0) return go_on(stage, 0, values, {&moment, 1});
  Join& join = stages_[stage].joins[stream - 1U];
  compute(joined_.stages[stage].joins[stream - 1U].within->joined, values, join.right_key);
  join.join->take_right(values, moment, join.right_key, budget_);
}

void TimeJoins::come_out(size_t stage, size_t index, Values row, Moments moments) {
  if (!is_passing_) return go_on(stage, index + 1, row, moments);
  is_passing_ = false;
  budget_ = limits_.each;
  go_on(stage, index + 1, row, moments);
  if (budget_.is_cut) ++counts_.cut;
  is_passing_ = true;
}

// To the join with this index, or behind the last one.
void TimeJoins::go_on(size_t stage, size_t index, Values row, Moments moments) {
  if (index == stages_[stage].joins.size()) return complete(stage, row, moments);
  Join& join = stages_[stage].joins[index];
  compute(joined_.stages[stage].joins[index].within->other, row, join.left_key);
  join.join->take_left(row, moments, join.left_key, budget_);
}

// The row of a joined query happens when its event of `from` does.
void TimeJoins::complete(size_t at, Values row, Moments moments) {
  Stage& stage = stages_[at];
  std::copy(row.begin(), row.end(), stage.joined.add().begin());
  if (at == 0) {
    if (stage.joined.size() >= kFew) answer();
    return;
  }
  stage.selected.clear();
  stage.rest->take(stage.joined, stage.selected);
  stage.joined.clear();
  for (size_t i = 0; i < stage.selected.size(); ++i)
    enter(stage.asker.first, stage.asker.second, stage.selected.at(i), moments[0]);
}

void TimeJoins::answer() {
  Stage& stage = stages_[0];
  if (!stage.joined.empty()) stage.rest->take(stage.joined, *rows_);
  stage.joined.clear();
}

// In one form, whatever the form of the values that it is computed from.
void TimeJoins::compute(const std::vector<query::Expression>& keys, Values row,
                        std::vector<Value>& into) {
  bindings_.set(row);
  for (size_t i = 0; i < keys.size(); ++i) {
    bindings_.evaluate(keys[i], into[i]);
    const bool is_number = keys[i].type.kind == query::TypeKind::Integer;
    if (is_number && !std::holds_alternative<std::monostate>(into[i]))
      into[i] = plan::bits_of(into[i]);
  }
}

// --- time ----------------------------------------------------------------------------------------

bool TimeJoins::pass(int64_t until_ns, RowBatch& rows) {
  until_ = std::max(until_, less(until_ns, limits_.slack_ns));
  return pass_all(until_, rows);
}

bool TimeJoins::drain(RowBatch& rows) {
  return pass_all(std::nullopt, rows);
}

bool TimeJoins::pass_all(std::optional<int64_t> until, RowBatch& rows) {
  rows_ = &rows;
  const bool is_done = pass_stage(0, until);
  answer();
  return is_done;
}

// From the front to the back, so that what a join gives is in time for those behind it. None: for
// ever.
bool TimeJoins::pass_stage(size_t at, std::optional<int64_t> until) {
  for (size_t i = 0; i < stages_[at].joins.size(); ++i) {
    const auto& subquery = joined_.stages[at].streams[i + 1].subquery;
    if (subquery && !pass_stage(*subquery, until)) return false;
    Join& join = stages_[at].joins[i];
    size_t most = limits_.batch;
    is_passing_ = true;
    const bool is_done = until ? join.join->pass(less(*until, join.left_lag_ns),
                                                 less(*until, join.right_lag_ns), most)
                               : join.join->drain(most);
    is_passing_ = false;
    if (!is_done) return false;
  }
  return true;
}

// --- what has come -------------------------------------------------------------------------------

const aggregate::Table& TimeJoins::counted() const {
  return stages_[0].rest->group().counted();
}

void TimeJoins::forget_counted() {
  stages_[0].rest->group().forget_counted();
}

uint64_t TimeJoins::passed() const {
  return stages_[0].rest->group().passed();
}

TimeJoinCounts TimeJoins::counts() const {
  TimeJoinCounts counts = counts_;
  for (const Stage& stage : stages_) {
    for (const Join& join : stage.joins) {
      counts.forgotten += join.join->forgotten();
      counts.cut += join.join->unchosen();
    }
  }
  return counts;
}

size_t TimeJoins::held() const {
  size_t held = 0;
  for (const Stage& stage : stages_) {
    for (const Join& join : stage.joins)
      held += join.join->held();
  }
  return held;
}

size_t TimeJoins::held_bytes() const {
  size_t bytes = 0;
  for (const Stage& stage : stages_) {
    for (const Join& join : stage.joins)
      bytes += join.join->bytes();
  }
  return bytes;
}

}  // namespace clew::answer
