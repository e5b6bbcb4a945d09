// SPDX-License-Identifier: Apache-2.0
#include "session/request_recorder.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "plan/evaluate.h"

namespace clew::session {

using aggregate::Value;
using causal::ContextKey;
using causal::Moment;
using causal::Thread;

namespace {

std::string text_at(std::span<const Value> event, std::optional<size_t> column) {
  if (!column) return {};
  const auto* const text = std::get_if<std::string>(&event[*column]);
  return text == nullptr ? std::string() : *text;
}

}  // namespace

std::vector<query::Field> RequestRecorder::fields() {
  using query::Field;
  return {Field::Time, Field::ProcName, Field::Comm, Field::Function};
}

RequestRecorder::RequestRecorder(const plan::Joined& joined, output::GraphChoice choice,
                                 RecorderLimits limits)
    : joined_(joined),
      choice_(choice),
      limits_(limits),
      time_column_(plan::column_of(joined, query::Field::Time)),
      process_column_(plan::column_of(joined, query::Field::ProcName)),
      thread_column_(plan::column_of(joined, query::Field::Comm)),
      function_column_(plan::column_of(joined, query::Field::Function)) {
  CLEW_ASSERT(time_column_.has_value());
}

// --- what is kept --------------------------------------------------------------------------------

RequestRecorder::Request* RequestRecorder::find(uint64_t request) {
  const auto found = open_.find(request);
  if (found == open_.end()) return nullptr;
  ages_.splice(ages_.end(), ages_, found->second.age);
  return &found->second;
}

RequestRecorder::Segment* RequestRecorder::segment_of(Request& request, uint32_t segment) {
  return segment < request.segments.size() ? &request.segments[segment] : nullptr;
}

// Something happens in it now.
void RequestRecorder::touch(Request& request, uint32_t segment) {
  Segment* const found = segment_of(request, segment);
  if (found == nullptr) return;
  found->end = std::max(found->end, now_);
  found->is_empty = false;
  if (found->thread != thread_) return;
  Lane& lane = request.lanes[thread_];
  if (process_column_) lane.process = text_at(event_, process_column_);
  if (thread_column_) lane.thread = text_at(event_, thread_column_);
}

void RequestRecorder::add_segment(Request& request, Thread thread) {
  ++request.inside;
  if (request.segments.size() >= limits_.segments) {
    ++request.segments_left_out;
    return;
  }
  request.segments.push_back({.thread = thread, .begin = now_, .end = now_});
  add_items(request, 1);
}

// Another one may go for it.
void RequestRecorder::add_items(Request& request, size_t items) {
  request.items += items;
  items_ += items;
}

void RequestRecorder::make_room(uint64_t but) {
  while (items_ > limits_.items && ages_.front() != but) {
    Request oldest = take_out(ages_.front());
    // Its threads have left it: only something that nobody takes keeps it.
    if (oldest.inside == 0) {
      decide(std::move(oldest), true);
    } else {
      ++given_up_;
    }
  }
}

RequestRecorder::Request RequestRecorder::take_out(uint64_t request) {
  const auto found = open_.find(request);
  CLEW_ASSERT(found != open_.end());
  Request taken = std::move(found->second);
  open_.erase(found);
  ages_.erase(taken.age);
  items_ -= taken.items;
  return taken;
}

bool RequestRecorder::is_better(const Request& request, bool is_over) const {
  if (!best_) return true;
  if (is_over != best_is_over_) return is_over;
  switch (choice_) {
    case output::GraphChoice::Slowest:
      return std::pair(best_->duration(), request.number) <
             std::pair(request.duration(), best_->number);
    case output::GraphChoice::First:
      return request.number < best_->number;
    case output::GraphChoice::Last:
      return request.number > best_->number;
  }
  return false;
}

void RequestRecorder::decide(Request request, bool is_over) {
  if (request.rows == 0) return;
  ++with_rows_;
  if (is_over) ++over_;
  if (!is_better(request, is_over)) return;
  best_ = std::move(request);
  best_is_over_ = is_over;
}

// --- what is said --------------------------------------------------------------------------------

void RequestRecorder::comes(std::span<const Value> event, Thread thread) {
  event_ = event;
  thread_ = thread;
  now_ = static_cast<int64_t>(plan::bits_of(event[*time_column_]));
  source_ = static_cast<uint32_t>(plan::bits_of(event[plan::Joined::kSource]));
}

void RequestRecorder::begins(Thread thread, const Moment& at) {
  ++requests_;
  ages_.push_back(at.request);
  Request& request = open_[at.request];
  request.number = at.request;
  request.age = std::prev(ages_.end());
  request.begin = now_;
  request.last = now_;
  request.begun_by = source_;
  add_segment(request, thread);
  touch(request, at.segment);
  make_room(at.request);
}

void RequestRecorder::happens(const Moment& moment) {
  Request* const request = find(moment.request);
  if (request == nullptr) return;
  request->last = std::max(request->last, now_);
  touch(*request, moment.segment);
  const bool has_segment = segment_of(*request, moment.segment) != nullptr;
  if (!has_segment || request->events.size() >= limits_.events) {
    ++request->events_left_out;
    return;
  }
  request->events.push_back({.segment = moment.segment,
                             .time = now_,
                             .source = source_,
                             .function = text_at(event_, function_column_),
                             .row = {event_.begin(), event_.end()}});
  add_items(*request, 1 + event_.size());
  make_room(moment.request);
}

void RequestRecorder::gives(const Moment& moment, uint64_t rows) {
  Request* const request = find(moment.request);
  if (request == nullptr) return;
  request->rows += rows;
  if (request->events.empty()) return;
  Event& last = request->events.back();
  const bool is_it = last.segment == moment.segment && last.time == now_;
  if (is_it) last.rows += rows;  // Else it is left out.
}

void RequestRecorder::puts(const ContextKey& key, const Moment& at) {
  Request* const request = find(at.request);
  if (request == nullptr) return;
  touch(*request, at.segment);
  const auto known = request->hand_overs.find(key);
  if (known != request->hand_overs.end() && is_left(*known)) ++request->not_taken;
  if (known == request->hand_overs.end() && request->hand_overs.size() >= limits_.hand_overs)
    return;
  if (known == request->hand_overs.end()) add_items(*request, 1);
  request->hand_overs[key] = {.segment = at.segment, .time = now_, .source = source_};
  make_room(at.request);
}

void RequestRecorder::goes_on(Thread thread, const Moment& at, const Crossing& crossing) {
  Request* const request = find(at.request);
  if (request == nullptr) return;
  add_segment(*request, thread);
  if (segment_of(*request, at.segment) == nullptr) return;
  if (thread == thread_) touch(*request, at.segment);
  if (crossing.own) {
    touch(*request, crossing.own->segment);
    request->edges.push_back(
        {.from = {.segment = crossing.own->segment, .time = now_}, .to = at.segment, .time = now_});
  }
  for (const From& from : crossing.from) {
    Edge edge{.from = {.segment = from.place.segment, .time = now_},
              .to = at.segment,
              .time = now_,
              .how = crossing.how,
              .source = source_};
    const auto known = from.key ? request->hand_overs.find(*from.key) : request->hand_overs.end();
    if (known != request->hand_overs.end()) {
      known->second.is_taken = true;
      edge.from = known->second;
      edge.has_place = true;
    }
    if (Segment* const behind = segment_of(*request, edge.from.segment); behind != nullptr)
      behind->is_empty = false;
    request->edges.push_back(edge);
  }
  add_items(*request, 2);
  make_room(at.request);
}

void RequestRecorder::leaves(const Moment& at) {
  Request* const request = find(at.request);
  if (request == nullptr) return;
  CLEW_ASSERT(request->inside > 0);
  --request->inside;
  Segment* const segment = segment_of(*request, at.segment);
  if (segment != nullptr) segment->left = now_;
}

void RequestRecorder::comes_back(const Moment& at) {
  Request* const request = find(at.request);
  if (request == nullptr) return;
  ++request->inside;
  Segment* const segment = segment_of(*request, at.segment);
  if (segment != nullptr) segment->left.reset();
}

// Of no thread, so nothing of it is drawn.
void RequestRecorder::comes_together(const Moment& at) {
  Request* const request = find(at.request);
  if (request == nullptr) return;
  add_segment(*request, {});
  --request->inside;
}

void RequestRecorder::is_gone(uint64_t request, bool is_over) {
  if (!open_.contains(request)) return;
  Request taken = take_out(request);
  if (is_over) {
    decide(std::move(taken), true);
  } else {
    ++given_up_;
  }
}

}  // namespace clew::session
