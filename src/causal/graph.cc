// SPDX-License-Identifier: Apache-2.0
#include "causal/graph.h"

#include <algorithm>

#include "base/assert.h"

namespace clew::causal {
namespace {

// The larger step of each segment.
std::vector<Reach> united(const std::vector<Reach>& a, const std::vector<Reach>& b) {
  std::vector<Reach> both;
  both.reserve(a.size() + b.size());
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    const bool only_left = right == b.end() || (left != a.end() && left->segment < right->segment);
    const bool only_right = left == a.end() || (right != b.end() && right->segment < left->segment);
    if (only_left) {
      both.push_back(*left++);
    } else if (only_right) {
      both.push_back(*right++);
    } else {
      both.push_back({.segment = left->segment, .step = std::max(left->step, right->step)});
      ++left;
      ++right;
    }
  }
  return both;
}

}  // namespace

// Whoever asks for a request uses it.
Graph::Request* Graph::find(uint64_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return nullptr;
  ages_.splice(ages_.end(), ages_, found->second.age);
  return &found->second;
}

void Graph::forget(uint64_t request) {
  const auto found = requests_.find(request);
  CLEW_ASSERT(found != requests_.end());
  ages_.erase(found->second.age);
  requests_.erase(found);
  gone_.push_back(request);
  ++counts_.forgotten;
}

// Null: it is in no request, or in one that is forgotten.
Graph::Place* Graph::place_of(Thread thread) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return nullptr;
  if (find(found->second.request) != nullptr) return &found->second;
  threads_.erase(found);
  return nullptr;
}

// Threads that have ended are told by nobody; those whose requests are forgotten make room.
void Graph::set_place(Thread thread, Place place) {
  if (threads_.size() >= limits_.threads && !threads_.contains(thread)) {
    std::erase_if(threads_,
                  [this](const auto& each) { return !requests_.contains(each.second.request); });
    if (threads_.size() >= limits_.threads) return;
  }
  threads_[thread] = place;
}

void Graph::begin(Thread thread) {
  if (requests_.size() >= limits_.requests) forget(ages_.front());
  const uint64_t request = ++last_request_;
  ages_.push_back(request);
  Request& made = requests_[request];
  made.age = std::prev(ages_.end());
  made.segments.emplace_back();
  set_place(thread, {.request = request});
  ++counts_.requests;
}

void Graph::end(Thread thread) {
  threads_.erase(thread);
}

void Graph::put(Thread thread, Key key) {
  const auto known = contexts_.find(key);
  if (known != contexts_.end()) {
    order_.erase(known->second.second);
    contexts_.erase(known);
  }
  const Place* const place = place_of(thread);
  if (place == nullptr) return;
  if (contexts_.size() >= limits_.contexts) {
    contexts_.erase(order_.begin()->second);
    order_.erase(order_.begin());
    ++counts_.untaken;
  }
  order_[++last_put_] = key;
  contexts_[key] = {*place, last_put_};
}

// A new segment behind all of them, which are of one request.
void Graph::go_on(Thread thread, const std::vector<Place>& behind) {
  CLEW_ASSERT(!behind.empty());
  const uint64_t id = behind[0].request;
  Request* const request = find(id);
  CLEW_ASSERT(request != nullptr);
  if (request->segments.size() >= limits_.segments) {
    forget(id);
    threads_.erase(thread);
    return;
  }
  Segment next;
  uint64_t number = 0;
  for (const Place& place : behind) {
    CLEW_ASSERT(place.request == id);
    const Segment& from = request->segments[place.segment];
    next.before = united(next.before, from.before);
    if (place.step != 0)
      next.before = united(next.before, {{.segment = place.segment, .step = place.step}});
    number = std::max(number, place.number);
  }
  request->segments.push_back(std::move(next));
  const auto segment = static_cast<uint32_t>(request->segments.size() - 1);
  set_place(thread, {.request = id, .segment = segment, .step = 0, .number = number});
}

void Graph::take(Thread thread, Key key, EdgeClass how) {
  const auto found = contexts_.find(key);
  if (found == contexts_.end() || find(found->second.first.request) == nullptr) {
    ++counts_.missing;
    end(thread);
    return;
  }
  ++counts_.edges[static_cast<size_t>(how)];
  go_on(thread, {found->second.first});
}

void Graph::join(Thread thread, Key key, EdgeClass how) {
  const Place* const own = place_of(thread);
  if (own == nullptr) return take(thread, key, how);
  const auto found = contexts_.find(key);
  if (found == contexts_.end() || find(found->second.first.request) == nullptr) {
    ++counts_.missing;
    return;
  }
  if (found->second.first.request != own->request) {
    ++counts_.mixed;
    return;
  }
  ++counts_.edges[static_cast<size_t>(how)];
  go_on(thread, {*own, found->second.first});
}

void Graph::fork(Thread parent, Thread child, EdgeClass how) {
  const Place* const place = place_of(parent);
  if (place == nullptr) return end(child);
  ++counts_.edges[static_cast<size_t>(how)];
  go_on(child, {*place});
}

void Graph::lose() {
  threads_.clear();
  contexts_.clear();
  order_.clear();
}

std::optional<Moment> Graph::event(Thread thread) {
  Place* const place = place_of(thread);
  if (place == nullptr) {
    ++counts_.orphans;
    return std::nullopt;
  }
  Segment& segment = requests_.at(place->request).segments[place->segment];
  CLEW_ASSERT(place->step == segment.steps);
  place->step = ++segment.steps;
  ++place->number;
  return *place;
}

std::vector<Reach> Graph::before(const Moment& moment) const {
  const auto found = requests_.find(moment.request);
  if (found == requests_.end()) return {};
  CLEW_ASSERT(moment.segment < found->second.segments.size());
  CLEW_ASSERT(moment.step > 0);
  const std::vector<Reach>& first = found->second.segments[moment.segment].before;
  if (moment.step == 1) return first;
  return united(first, {{.segment = moment.segment, .step = moment.step - 1}});
}

}  // namespace clew::causal
