// SPDX-License-Identifier: Apache-2.0
#include "answer/joins.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/assert.h"
#include "plan/evaluate.h"
#include "query/socket_carriers.h"

namespace clew::answer {

using aggregate::Value;
using causal::Moment;
using plan::JoinStage;
using query::JoinFilter;

namespace {

// Of Debian's kernels 27 µs were seen, on a busy machine.
constexpr int64_t kLateNs = 1'000'000;

int64_t time_of(std::span<const Value> event) {
  return static_cast<int64_t>(plan::bits_of(event[plan::Joined::kTime]));
}

bool sends(const std::vector<plan::JoinRole>& roles) {
  const auto& carrier = roles[0].carrier;
  return carrier && carrier->cause.act == query::Act::Send;
}

}  // namespace

Joins::Joins(const plan::Joined& joined, causal::Profiles* profiles, JoinLimits limits,
             JoinObserver* observer)
    : joined_(joined),
      limits_(limits),
      observer_(observer),
      graph_(limits.graph, joined.least_cause, observer),
      sockets_(graph_, profiles),
      messages_(graph_, limits.graph.contexts),
      asker_(joined.stages.size()) {
  if (std::any_of(joined.roles.begin(), joined.roles.end(), sends)) looks_ahead_ns_ = kLateNs;
  for (size_t i = 0; i < joined.stages.size(); ++i) {
    const JoinStage& stage = joined.stages[i];
    stages_.push_back(std::make_unique<JoinRest>(stage.rest, i == 0));
    first_stream_.push_back(streams_);
    streams_ += stage.streams.size();
    for (size_t s = 0; s < stage.streams.size(); ++s) {
      if (stage.streams[s].subquery) asker_[*stage.streams[s].subquery] = {i, s};
    }
  }
}

Joins::~Joins() = default;

const aggregate::Table& Joins::counted() const {
  return stages_[0]->group().counted();
}

void Joins::forget_counted() {
  stages_[0]->group().forget_counted();
}

uint64_t Joins::passed() const {
  return stages_[0]->group().passed();
}

JoinCounts Joins::counts() const {
  JoinCounts counts = counts_;
  counts.graph = graph_.counts();
  counts.sockets = sockets_.counts();
  return counts;
}

// --- events --------------------------------------------------------------------------------------

void Joins::fork(causal::Thread parent, const plan::JoinRole& role, Values event) {
  const auto child = static_cast<int64_t>(plan::bits_of(event[role.key_columns[0]]));
  const bool is_thread = plan::bits_of(event[role.key_columns[1]]) != 0;
  last_seen_[child] = time_of(event);  // It begins behind that.
  sockets_.fork(parent, {.pid = is_thread ? parent.pid : child, .tid = child},
                role.carrier->cause.how);
}

namespace {

causal::Passage passage_of(const plan::JoinRole& role, causal::Thread thread,
                           std::span<const Value> event) {
  std::array<uint64_t, query::kSocketKeys> keys{};
  std::transform(role.key_columns.begin(), role.key_columns.end(), keys.begin(),
                 [event](size_t column) { return plan::bits_of(event[column]); });
  causal::Passage passage = query::passage_of(thread, role.carrier->cause.medium, keys);
  if (passage.count) passage.count->time = time_of(event);
  return passage;
}

causal::Thread thread_of(std::span<const Value> event) {
  return {.pid = static_cast<int64_t>(plan::bits_of(event[plan::Joined::kPid])),
          .tid = static_cast<int64_t>(plan::bits_of(event[plan::Joined::kTid]))};
}

}  // namespace

size_t Joins::take(RowBatch& events, Part part, RowBatch& rows) {
  rows_ = &rows;
  events_ = &events;
  if (part.begin == 0) find_sends(events);
  for (at_ = part.begin; at_ < part.end && rows.size() < limits_.batch; ++at_)
    take_event(events.at(at_));
  drop_gone();
  return at_;
}

void Joins::skip(const RowBatch& events) {
  graph_.lose();
  sockets_.lose();
  counts_.skipped += events.size();
}

void Joins::see(causal::Thread thread, int64_t time) {
  constexpr size_t kMost = 100'000;
  if (last_seen_.size() >= kMost) last_seen_.clear();
  const auto [seen, is_new] = last_seen_.try_emplace(thread.tid, causal::Passage::Count::kNever);
  seen_before_ = std::exchange(seen->second, time);
}

namespace {

// Whether the thread is in no call that sends or receives: in its program, where it enters one, and
// where one of these returns.
bool is_outside_calls(const plan::Joined& joined, uint64_t source) {
  const query::SourceKind kind = joined.events.sources[source].kind;
  return !query::is_kernel_source(kind) || kind == query::SourceKind::Syscall ||
         joined.roles[source][0].carrier.has_value();
}

}  // namespace

void Joins::take_event(Values event) {
  const uint64_t source = plan::bits_of(event[plan::Joined::kSource]);
  const causal::Thread thread = thread_of(event);
  if (source >= joined_.roles.size()) return;  // A recording can say anything.
  if (looks_ahead_ns_ != 0 && is_outside_calls(joined_, source)) see(thread, time_of(event));
  if (observer_ != nullptr) observer_->comes(event, thread);
  std::optional<std::optional<Moment>> moment;
  for (const plan::JoinRole& role : joined_.roles[source]) {
    if (role.carrier) {
      act(role, thread, event);
      continue;
    }
    if (!moment) {
      moment = graph_.event(thread);
      uncounted_ = thread;
      if (observer_ != nullptr && *moment) observer_->happens(**moment);
    }
    std::vector<Value> values;
    for (const size_t column : joined_.stages[role.stage].streams[role.stream].columns)
      values.push_back(event[column]);
    give(role.stage, role.stream, *moment, values);
  }
}

void Joins::act(const plan::JoinRole& role, causal::Thread thread, Values event) {
  const query::Carrier& carrier = *role.carrier;
  const query::Cause& cause = carrier.cause;
  if (query::form_of(carrier) != query::KeyForm::Number) return act_on_message(role, thread, event);
  causal::ContextKey key{.pid = cause.across ? 0 : thread.pid};
  if (!carrier.keys.empty()) key.object = plan::bits_of(event[role.key_columns[0]]);
  switch (cause.act) {
    case query::Act::Begin:
      return sockets_.begin(thread, cause.how);
    case query::Act::End:
      return sockets_.leave(thread);
    case query::Act::Put:
      return sockets_.put(thread, key, cause.how);
    case query::Act::Take:
      return sockets_.take(thread, key, cause.how);
    case query::Act::Join:
      return sockets_.join(thread, key, cause.how);
    case query::Act::Fork:
      return fork(thread, role, event);
    case query::Act::Multiplex:
      sockets_.leave(thread);
      return sockets_.multiplex(thread);
    case query::Act::Execute:
      return sockets_.execute(thread);
    case query::Act::Exit:
      return sockets_.end(thread);
    case query::Act::Connect:
      return sockets_.connect(thread, key.object);
    case query::Act::Wait:
      return sockets_.wait(thread);
    case query::Act::Send:
    case query::Act::Receive:
      return act_on_socket(role, thread, event);
  }
}

std::optional<causal::ContextKey> Joins::message_of(const plan::JoinRole& role, Values event) {
  const Value& key = event[role.key_columns[0]];
  if (query::form_of(*role.carrier) == query::KeyForm::Token)
    return causal::key_of_token(plan::bits_of(key), plan::bits_of(event[role.key_columns[1]]));
  const std::string* const text = std::get_if<std::string>(&key);
  if (text == nullptr) return std::nullopt;
  const bool is_sent = role.carrier->cause.act == query::Act::Put;
  return is_sent ? messages_.sent(*text) : messages_.received(*text);
}

// What comes in a message can be anything. What leads nowhere leaves its thread in no request.
void Joins::act_on_message(const plan::JoinRole& role, causal::Thread thread, Values event) {
  const query::Cause& cause = role.carrier->cause;
  const std::optional<causal::ContextKey> message = message_of(role, event);
  if (!message) ++counts_.bad_tokens;
  if (cause.act == query::Act::Put) {
    if (message) sockets_.put(thread, *message, cause.how);
  } else if (message && graph_.admit(*message)) {
    sockets_.take(thread, *message, cause.how);
  } else {
    sockets_.leave(thread);
  }
}

void Joins::act_on_socket(const plan::JoinRole& role, causal::Thread thread, Values event) {
  causal::Passage passage = passage_of(role, thread, event);
  if (passage.count) passage.count->before = seen_before_;
  if (role.carrier->cause.act == query::Act::Receive) {
    send_ahead(passage);
    return sockets_.receive(passage);
  }
  const auto ahead = ahead_.find(passage.out);
  CLEW_ASSERT(ahead != ahead_.end() && !ahead->second.empty() && ahead->second.front().at == at_);
  ahead->second.pop_front();
  sockets_.send(passage);
}

void Joins::find_sends(RowBatch& events) {
  if (looks_ahead_ns_ == 0) return;
  ahead_.clear();
  for (size_t i = 0; i < events.size(); ++i) {
    const Values event = events.at(i);
    const uint64_t source = plan::bits_of(event[plan::Joined::kSource]);
    if (source >= joined_.roles.size()) continue;
    const plan::JoinRole& role = joined_.roles[source][0];
    if (!sends(joined_.roles[source])) continue;
    const causal::Passage sent = passage_of(role, thread_of(event), event);
    ahead_[sent.out].push_back({.at = i, .sent = sent});
  }
}

// Whether the thread is in a call that is seen to end at that row.
bool Joins::is_in_call(causal::Thread thread, size_t call) const {
  for (size_t i = at_ + 1; i < call; ++i) {
    if (thread_of(events_->at(i)) == thread) return false;
  }
  return true;
}

// Their thread is still in the call, and where it was before: that is sure where the bytes have
// numbers. Their rows are nobody's from then on.
void Joins::send_ahead(const causal::Passage& received) {
  const auto ahead = ahead_.find(received.out.reversed());
  if (ahead == ahead_.end()) return;
  std::deque<Ahead>& sends = ahead->second;
  while (!sends.empty() && sockets_.lacks(received, sends.front().sent)) {
    causal::Passage& sent = sends.front().sent;
    if (sent.count) {
      // Without numbers, of one that alone sends there: nobody else can have been in between.
      const bool is_alone =
          sockets_.sends_alone(sent) &&
          std::all_of(sends.begin(), sends.end(), [&sent](const Ahead& each) {
            // Another number is another socket, where this one was.
            return each.sent.thread == sent.thread || each.sent.count->own != sent.count->own;
          });
      if (!is_alone || !is_in_call(sent.thread, sends.front().at)) return;
      const auto seen = last_seen_.find(sent.thread.tid);
      if (seen != last_seen_.end()) sent.count->before = seen->second;
    }
    if (observer_ != nullptr) show_ahead(sends.front());
    sockets_.send(sent);
    events_->at(sends.front().at)[plan::Joined::kSource] =
        static_cast<int64_t>(joined_.roles.size());
    sends.pop_front();
    if (observer_ != nullptr) observer_->comes(events_->at(at_), received.thread);
  }
}

// By now it has happened.
void Joins::show_ahead(const Ahead& ahead) {
  const Values row = events_->at(ahead.at);
  shown_.assign(row.begin(), row.end());
  shown_[plan::Joined::kTime] = events_->at(at_)[plan::Joined::kTime];
  observer_->comes(shown_, ahead.sent.thread);
}

// A row of a stream: it is joined with what happened before, or kept for what comes.
void Joins::give(size_t stage, uint16_t stream, const std::optional<Moment>& moment,
                 Values values) {
  if (observer_ != nullptr) observer_->enters({.stage = stage, .stream = stream}, moment);
  if (stream != 0) {
    if (moment) keep(stage, stream, *moment, values);
    return;
  }
  const JoinStage& plan = joined_.stages[stage];
  Joining joining{.row = std::vector<Value>(plan.width),
                  .moments = std::vector<std::optional<Moment>>(plan.streams.size())};
  std::copy(values.begin(), values.end(), joining.row.begin());
  joining.moments[0] = moment;
  RowBatch joined(plan.width);
  joining.into = &joined;
  if (!join(stage, 0, joining)) ++counts_.cut;
  if (stage == 0 && moment && joined.empty()) ++counts_.unjoined;
  if (observer_ != nullptr) observer_->joins(stage, moment, joined);
  if (stage == 0) return answer(joined, moment);
  RowBatch rows(stages_[stage]->width());
  stages_[stage]->take(joined, rows);
  for (size_t i = 0; i < rows.size(); ++i)
    give(asker_[stage].first, asker_[stage].second, moment, rows.at(i));
}

void Joins::answer(RowBatch& joined, const std::optional<Moment>& moment) {
  const uint64_t before = rows_->size() + passed();
  stages_[0]->take(joined, *rows_);
  const uint64_t rows = rows_->size() + passed() - before;
  if (observer_ != nullptr && moment && rows != 0) observer_->gives(*moment, rows);
}

// False: only the request itself is left, and it is too much alone.
bool Joins::make_room(uint64_t request) {
  while (kept_ >= limits_.kept) {
    if (!graph_.forget_one()) return false;
    drop_gone();
    if (!graph_.knows(request)) return false;
  }
  return true;
}

void Joins::keep(size_t stage, uint16_t stream, const Moment& moment, Values values) {
  if (!make_room(moment.request)) return;
  // Numbers are those of what is chosen from, so they are the same wherever conditions are looked
  // at.
  const bool is_chosen = joined_.stages[stage].joins[stream - 1U].filter != JoinFilter::All;
  if (is_chosen && uncounted_) graph_.count(*std::exchange(uncounted_, std::nullopt));
  std::vector<BySegment>& streams = requests_[moment.request].streams;
  streams.resize(streams_);
  streams[first_stream_[stage] + stream][moment.segment].push_back(
      {.step = moment.step,
       .number = moment.number,
       .order = ++order_,
       .values = {values.begin(), values.end()}});
  ++kept_;
  if (observer_ != nullptr) observer_->keeps({.stage = stage, .stream = stream}, moment, values);
}

void Joins::drop_gone() {
  for (const uint64_t id : graph_.take_gone()) {
    const auto request = requests_.find(id);
    if (request == requests_.end()) continue;
    for (const BySegment& stream : request->second.streams) {
      for (const auto& [segment, rows] : stream)
        kept_ -= rows.size();
    }
    requests_.erase(request);
  }
}

// --- the join ------------------------------------------------------------------------------------

namespace {

// How many the join takes at most.
size_t count_of(const JoinStage::Join& join) {
  return join.filter == JoinFilter::All ? SIZE_MAX : join.count;
}

bool is_from_front(const JoinStage::Join& join) {
  return join.filter != JoinFilter::MostRecent && join.filter != JoinFilter::MostRecentN;
}

// So many of a range, from its front or its back.
template <typename Range>
std::span<const typename Range::value_type> part_of(const Range& range, size_t size,
                                                    const JoinStage::Join& join) {
  const size_t count = std::min(size, count_of(join));
  const size_t begin = is_from_front(join) ? 0 : size - count;
  return std::span(range).subspan(begin, count);
}

// So many rows happened up to that step of their segment.
template <typename Rows>
size_t count_up_to(const Rows& rows, uint64_t last) {
  const auto end = std::upper_bound(rows.begin(), rows.end(), last,
                                    [](uint64_t step, const auto& row) { return step < row.step; });
  return static_cast<size_t>(end - rows.begin());
}

}  // namespace

// What the join takes of the stream, in the order of their numbers, which rise in each segment.
std::vector<Joins::Found> Joins::found(size_t stream, const Moment& later,
                                       const JoinStage::Join& join) const {
  const auto request = requests_.find(later.request);
  if (request == requests_.end()) return {};
  const BySegment& segments = request->second.streams[stream];
  if (segments.empty()) return {};
  std::vector<Found> all;
  for (const causal::Reach& reach : graph_.before(later)) {
    const auto rows = segments.find(reach.segment);
    if (rows == segments.end()) continue;
    const size_t size = count_up_to(rows->second, reach.step);
    for (const Kept& row : part_of(rows->second, size, join))
      all.push_back({.row = &row, .segment = reach.segment});
  }
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return std::pair(a.row->number, a.row->order) < std::pair(b.row->number, b.row->order);
  });
  const std::span<const Found> taken = part_of(all, all.size(), join);
  return {taken.begin(), taken.end()};
}

// False: there were too many rows, and the rest is left out.
bool Joins::join(size_t stage, size_t index, Joining& joining) {
  const JoinStage& plan = joined_.stages[stage];
  if (index == plan.joins.size()) {
    if (joining.into->size() >= limits_.rows) return false;
    std::copy(joining.row.begin(), joining.row.end(), joining.into->add().begin());
    return true;
  }
  const JoinStage::Join& join_of = plan.joins[index];
  const JoinStage::Stream& stream = plan.streams[index + 1];
  if (stream.subquery && stages_[*stream.subquery]->is_grouped())
    return join_groups(stage, index, joining);
  const std::optional<Moment>& later = joining.moments[join_of.after];
  std::vector<Found> rows;
  if (later) rows = found(first_stream_[stage] + index + 1, *later, join_of);
  if (observer_ != nullptr) observer_->unpacks({.stage = stage, .stream = index + 1}, rows.size());
  const auto place = joining.row.begin() + static_cast<ptrdiff_t>(stream.begin);
  for (const Found& each : rows) {
    std::copy(each.row->values.begin(), each.row->values.end(), place);
    joining.moments[index + 1] = Moment{.request = later->request,
                                        .segment = each.segment,
                                        .step = each.row->step,
                                        .number = each.row->number};
    if (!join(stage, index + 1, joining)) return false;
  }
  return !rows.empty() || !join_of.left || join_nothing(stage, index, joining);
}

// What happened before and is not counted yet. Where something is counted that did not, all is
// counted anew.
std::vector<Joins::Found> Joins::find_new(const BySegment& segments, const Moment& later,
                                          Counted& counted) const {
  std::map<uint32_t, size_t> sizes;
  for (const causal::Reach& reach : graph_.before(later)) {
    const auto rows = segments.find(reach.segment);
    if (rows != segments.end()) sizes[reach.segment] = count_up_to(rows->second, reach.step);
  }
  const bool is_part =
      std::all_of(counted.taken.begin(), counted.taken.end(), [&sizes](const auto& taken) {
        const auto size = sizes.find(taken.first);
        return size != sizes.end() && taken.second <= size->second;
      });
  if (!is_part) counted = {};
  std::vector<Found> found;
  for (const auto& [segment, size] : sizes) {
    const std::vector<Kept>& rows = segments.at(segment);
    for (size_t i = std::exchange(counted.taken[segment], size); i < size; ++i)
      found.push_back({.row = &rows[i], .segment = segment});
  }
  return found;
}

// Behind a hand-over it is most often more of what was counted last.
Joins::Counted& Joins::counted_for(CountedBefore& before, uint32_t segment) {
  constexpr size_t kMost = 16;
  const uint32_t last = std::exchange(before.last, segment);
  const auto known = before.segments.find(segment);
  if (known != before.segments.end()) return known->second;
  Counted begin;
  if (const auto found = before.segments.find(last); found != before.segments.end())
    begin = found->second;
  if (before.segments.size() >= kMost) before.segments.clear();
  return before.segments.emplace(segment, std::move(begin)).first->second;
}

std::vector<const std::vector<Value>*> Joins::values_of(const std::vector<Found>& rows) {
  std::vector<const std::vector<Value>*> values(rows.size());
  std::transform(rows.begin(), rows.end(), values.begin(),
                 [](const Found& found) { return &found.row->values; });
  return values;
}

// Large cells, as of quantiles, are not kept.
std::vector<aggregate::Row> Joins::groups_before(size_t stage, size_t index, const Moment& later) {
  constexpr size_t kMostWords = 8;
  const auto request = requests_.find(later.request);
  if (request == requests_.end()) return {};
  JoinRest& groups = *stages_[*joined_.stages[stage].streams[index + 1].subquery];
  const JoinStage::Join& join = joined_.stages[stage].joins[index];
  const size_t stream = first_stream_[stage] + index + 1;
  std::optional<aggregate::Table> none;
  if (join.filter != JoinFilter::All || groups.cell_words() > kMostWords)
    return groups.groups_with(values_of(found(stream, later, join)), none);
  Counted& counted = counted_for(request->second.counted[stream], later.segment);
  const std::vector<Found> rows = find_new(request->second.streams[stream], later, counted);
  return groups.groups_with(values_of(rows), counted.table);
}

// The groups of what was found, each of which is a row; they happen at no moment.
bool Joins::join_groups(size_t stage, size_t index, Joining& joining) {
  const JoinStage::Stream& stream = joined_.stages[stage].streams[index + 1];
  const std::optional<Moment>& later = joining.moments[joined_.stages[stage].joins[index].after];
  std::vector<aggregate::Row> groups;
  if (later) groups = groups_before(stage, index, *later);
  if (observer_ != nullptr)
    observer_->unpacks({.stage = stage, .stream = index + 1}, groups.size());
  joining.moments[index + 1].reset();
  for (const aggregate::Row& group : groups) {
    std::copy(group.begin(), group.end(),
              joining.row.begin() + static_cast<ptrdiff_t>(stream.begin));
    if (!join(stage, index + 1, joining)) return false;
  }
  const bool is_left = joined_.stages[stage].joins[index].left;
  return !groups.empty() || !is_left || join_nothing(stage, index, joining);
}

// A row of a left join that found nothing.
bool Joins::join_nothing(size_t stage, size_t index, Joining& joining) {
  const JoinStage::Stream& stream = joined_.stages[stage].streams[index + 1];
  std::fill_n(joining.row.begin() + static_cast<ptrdiff_t>(stream.begin), stream.columns.size(),
              Value{});
  joining.moments[index + 1].reset();
  return join(stage, index + 1, joining);
}

}  // namespace clew::answer
