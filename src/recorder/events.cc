// SPDX-License-Identifier: Apache-2.0
#include "recorder/events.h"

#include <algorithm>

namespace clew::recorder {

ThreadEvents::ThreadEvents(SnapModules& modules, Places& places, History& history, Options options)
    : modules_(modules), places_(places), history_(history), options_(options) {
  while (options_.lines && history_.at(moments_left_))
    ++moments_left_;
}

std::optional<ThreadEvent> ThreadEvents::next() {
  while (ready_.empty() && !is_at_end_)
    step_ < history_.walked().steps.size() ? add_step() : add_end();
  if (ready_.empty()) return std::nullopt;
  const ThreadEvent event = ready_.front();
  ready_.pop_front();
  return event;
}

void ThreadEvents::add_step() {
  const Step& step = history_.walked().steps[step_];
  leave(step.is_entry ? step.depth : step.depth + 1);
  const auto pieces = places_.pieces_of(step);
  if (pieces.empty()) {
    ++step_;
    return;
  }
  ThreadEvent event{.marks = step.marks,
                    .place = pieces.front().place,
                    .address = pieces.front().address,
                    .depth = step.depth,
                    .order = static_cast<uint32_t>(step_ + 1)};
  const Piece last = pieces.back();
  if ((step.marks & kUnwound) != 0) {
    event.kind = EventKind::Exception;
    ready_.push_back(event);
  }
  if (step.is_entry) {
    event.kind = EventKind::Call;
    event.is_of_activation = true;
    event.caller = caller_at(step.depth);
    ready_.push_back(event);
  }
  if (stack_.empty() || stack_.back().depth != step.depth)
    stack_.push_back({.depth = step.depth, .caller = caller_at(step.depth)});
  stack_.back().place = last.place;
  stack_.back().address = last.address;
  stack_.back().order = event.order;
  stack_.back().returns = returns(step);
  event.kind = EventKind::Block;
  event.is_of_activation = false;
  event.caller = std::nullopt;
  ready_.push_back(event);
  add_lines();
  ++step_;
}

void ThreadEvents::add_end() {
  is_at_end_ = true;
  const Walk& walk = history_.walked();
  // Where control stopped in an activation, nothing says that it has returned.
  if (walk.end == PathEnd::Return && !stack_.empty()) leave(stack_.back().depth);
  if (!options_.got_signal) return;
  const Stop& stop = history_.stop();
  ready_.push_back({.kind = EventKind::Signal,
                    .marks = stop.is_uncertain ? kUncertain : uint8_t{0},
                    .place = stop.place,
                    .address = stop.address,
                    .depth = walk.steps.empty() ? 0 : walk.steps.back().depth,
                    .order = static_cast<uint32_t>(walk.steps.size())});
}

void ThreadEvents::add_lines() {
  while (moments_left_ != 0) {
    const auto moment = history_.at(moments_left_ - 1);
    if (!moment || moment->step > step_) return;
    ready_.push_back({.kind = EventKind::Line,
                      .marks = moment->marks,
                      .place = moment->place,
                      .address = moment->address,
                      .depth = moment->depth,
                      .order = static_cast<uint32_t>(step_ + 1)});
    --moments_left_;
  }
}

// Activations of this depth and above it have ended.
void ThreadEvents::leave(int32_t depth) {
  while (!stack_.empty() && stack_.back().depth >= depth) {
    const Activation one = stack_.back();
    stack_.pop_back();
    if (one.returns) add_return(one);
  }
}

void ThreadEvents::add_return(const Activation& one) {
  ready_.push_back({.kind = EventKind::Return,
                    .place = one.place,
                    .is_of_activation = true,
                    .address = one.address,
                    .depth = one.depth,
                    .order = one.order,
                    .caller = one.caller});
}

bool ThreadEvents::returns(const Step& step) {
  const auto ways =
      modules_.walked()[step.module].paths->of(step.function).flow().ways_of(step.block);
  return ways.size() == 1 && ways[0].kind == WayKind::Return;
}

std::optional<uint32_t> ThreadEvents::caller_at(int32_t depth) const {
  if (stack_.empty() || stack_.back().depth >= depth) return std::nullopt;
  return stack_.back().place;
}

}  // namespace clew::recorder
