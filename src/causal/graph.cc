// SPDX-License-Identifier: Apache-2.0
#include "causal/graph.h"

#include <algorithm>
#include <type_traits>

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
  std::list<uint64_t>& ages = ages_of(found->second);
  ages.splice(ages.end(), ages, found->second.age);
  return &found->second;
}

void Graph::drop(uint64_t request, bool is_over) {
  const auto found = requests_.find(request);
  CLEW_ASSERT(found != requests_.end());
  reaches_ -= found->second.reaches;
  ages_of(found->second).erase(found->second.age);
  requests_.erase(found);
  gone_.push_back(request);
  if (observer_ != nullptr) observer_->is_gone(request, is_over);
}

// Who receives a message of one that only messages carry will know, and be counted.
bool Graph::forget_one() {
  if (!idle_.empty()) {
    drop(idle_.front(), true);
    return true;
  }
  if (ages_.empty()) return false;
  drop(ages_.front(), false);
  ++counts_.forgotten;
  return true;
}

// --- who is where --------------------------------------------------------------------------------

// Somebody has come into it or left.
void Graph::settle(Request& request) {
  const bool is_idle = request.references == request.messages;
  if (is_idle == request.is_idle) return;
  std::list<uint64_t>& from = ages_of(request);
  request.is_idle = is_idle;
  std::list<uint64_t>& to = ages_of(request);
  to.splice(to.end(), from, request.age);
}

// One less is in it.
void Graph::release(uint64_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  CLEW_ASSERT(found->second.references > 0);
  if (--found->second.references == 0) return drop(request, true);
  settle(found->second);
}

template <typename Who>
void Graph::leave(Places<Who>& places, const Who& who) {
  const auto found = places.all.find(who);
  if (found == places.all.end()) return;
  const Place place = found->second.place;
  places.ages.erase(found->second.age);
  places.all.erase(found);
  if constexpr (std::is_same_v<Who, Thread>) {
    const auto request = requests_.find(place.request);
    if (request != requests_.end()) request->second.segments[place.segment].has_thread = false;
    if (observer_ != nullptr) observer_->leaves(place);
  } else if (who.is_message()) {
    const auto request = requests_.find(place.request);
    if (request != requests_.end()) --request->second.messages;
  }
  release(place.request);
}

// Null: it is in no request, or in one that is forgotten.
template <typename Who>
Graph::Place* Graph::place_of(Places<Who>& places, const Who& who) {
  const auto found = places.all.find(who);
  if (found == places.all.end()) return nullptr;
  if (find(found->second.place.request) != nullptr) return &found->second.place;
  leave(places, who);
  return nullptr;
}

// The request is held before the one that `who` leaves may end: they can be one.
template <typename Who>
void Graph::set(Places<Who>& places, const Who& who, const Place& place, size_t limit) {
  Request& request = requests_.at(place.request);
  ++request.references;
  if constexpr (std::is_same_v<Who, ContextKey>) request.messages += who.is_message() ? 1 : 0;
  settle(request);
  leave(places, who);
  if (places.all.size() >= limit) leave(places, Who(places.ages.front()));
  places.ages.push_back(who);
  places.all[who] = {.place = place, .age = std::prev(places.ages.end())};
  if constexpr (std::is_same_v<Who, Thread>) {
    Segment& segment = requests_.at(place.request).segments[place.segment];
    segment.thread = who;
    segment.has_thread = true;
  }
}

// --- edges ---------------------------------------------------------------------------------------

bool Graph::is_weak(EdgeClass how) {
  if (how <= least_) return false;
  ++counts_.weak;
  return true;
}

// Of the edge from who put the key, which is there.
EdgeClass Graph::class_of(ContextKey key, EdgeClass how) const {
  return std::max(how, keys_.all.at(key).how);
}

void Graph::begin(Thread thread, EdgeClass how) {
  leave(threads_, thread);
  if (is_weak(how)) return;
  if (requests_.size() >= limits_.requests) (void)forget_one();
  const uint64_t request = ++last_request_;
  ages_.push_back(request);
  Request& made = requests_[request];
  made.age = std::prev(ages_.end());
  made.segments.push_back({.before = std::make_shared<const Reaches>()});
  set(threads_, thread, {.request = request}, limits_.threads);
  ++counts_.requests;
  if (observer_ != nullptr) observer_->begins(thread, {.request = request});
}

void Graph::end(Thread thread) {
  leave(threads_, thread);
}

void Graph::put(Thread thread, ContextKey key, EdgeClass how) {
  const Place* const place = place_of(threads_, thread);
  if (place == nullptr) return leave(keys_, key);
  const Place* const known = key.is_message() ? place_of(keys_, key) : nullptr;
  if (known != nullptr) {
    bool& is_doubtful = keys_.all.at(key).is_doubtful;
    is_doubtful = is_doubtful || known->request != place->request;
    if (is_doubtful) return;
  }
  set(keys_, key, Place(*place), limits_.contexts);
  keys_.all.at(key).how = how;
  if (observer_ != nullptr) observer_->puts(key, *place);
}

// What happened before a segment that goes on behind all of these places.
std::shared_ptr<const Graph::Reaches> Graph::reaches_behind(Request& request,
                                                            const std::vector<Place>& behind) {
  const bool is_same = behind.size() == 1 && behind[0].step == 0;
  if (is_same) return request.segments[behind[0].segment].before;
  Reaches all;
  for (const Place& place : behind) {
    all = united(all, *request.segments[place.segment].before);
    if (place.step != 0) all = united(all, {{.segment = place.segment, .step = place.step}});
  }
  request.reaches += all.size();
  reaches_ += all.size();
  return std::make_shared<const Reaches>(std::move(all));
}

// Behind all of them, which are of one request. None: that has too many, and is forgotten.
std::optional<Graph::Place> Graph::add_segment(const std::vector<Place>& behind) {
  CLEW_ASSERT(!behind.empty());
  const uint64_t id = behind[0].request;
  Request* const request = find(id);
  CLEW_ASSERT(request != nullptr);
  if (request->segments.size() >= limits_.segments) {
    drop(id, false);
    ++counts_.forgotten;
    return std::nullopt;
  }
  uint64_t number = 0;
  for (const Place& place : behind) {
    CLEW_ASSERT(place.request == id);
    number = std::max(number, place.number);
  }
  request->segments.push_back({.before = reaches_behind(*request, behind)});
  const auto segment = static_cast<uint32_t>(request->segments.size() - 1);
  return Place{.request = id, .segment = segment, .number = number};
}

// A new segment behind all of them, which are of one request.
void Graph::go_on(Thread thread, const std::vector<Place>& behind) {
  const std::optional<Place> place = add_segment(behind);
  if (!place) return leave(threads_, thread);
  set(threads_, thread, *place, limits_.threads);
  // This one was used last: it goes only when it is alone.
  while (reaches_ > limits_.reaches && forget_one()) {
  }
}

// Behind go_on(), where the request may have been too much.
void Graph::tell(Thread thread, const GraphObserver::Crossing& crossing) const {
  const auto found = threads_.all.find(thread);
  if (found == threads_.all.end() || !knows(found->second.place.request)) return;
  observer_->goes_on(thread, found->second.place, crossing);
}

bool Graph::admit(ContextKey message) {
  if (place_of(keys_, message) == nullptr) {
    ++counts_.not_sent;
    return false;
  }
  auto& known = keys_.all.at(message);
  if (known.is_doubtful || known.receivers >= limits_.receivers) {
    ++(known.is_doubtful ? counts_.sent_twice : counts_.worn);
    return false;
  }
  if (known.receivers++ != 0) ++counts_.again;
  return true;
}

void Graph::take(Thread thread, ContextKey key, EdgeClass how) {
  const Place* const from = place_of(keys_, key);
  if (from == nullptr) {
    ++counts_.missing;
    return leave(threads_, thread);
  }
  const EdgeClass known = class_of(key, how);
  if (is_weak(known)) return leave(threads_, thread);
  ++counts_.edges[static_cast<size_t>(known)];
  const Place behind = *from;
  go_on(thread, {behind});
  if (observer_ != nullptr) tell(thread, {.how = known, .from = {{.place = behind, .key = key}}});
}

void Graph::join(Thread thread, ContextKey key, EdgeClass how) {
  const Place* const own = place_of(threads_, thread);
  if (own == nullptr) return take(thread, key, how);
  const Place* const from = place_of(keys_, key);
  if (from == nullptr) {
    ++counts_.missing;
    return;
  }
  if (from->request != own->request) {
    ++counts_.mixed;
    return;
  }
  const EdgeClass known = class_of(key, how);
  if (is_weak(known)) return leave(threads_, thread);
  ++counts_.edges[static_cast<size_t>(known)];
  const Place before = *own;
  const Place behind = *from;
  go_on(thread, {before, behind});
  if (observer_ != nullptr)
    tell(thread, {.how = known, .own = before, .from = {{.place = behind, .key = key}}});
}

void Graph::fork(Thread parent, Thread child, EdgeClass how) {
  const Place* const place = place_of(threads_, parent);
  if (place == nullptr || is_weak(how)) return leave(threads_, child);
  ++counts_.edges[static_cast<size_t>(how)];
  const Place behind = *place;
  go_on(child, {behind});
  if (observer_ != nullptr) tell(child, {.how = how, .from = {{.place = behind}}});
}

bool Graph::is_behind(const Place& place, const Place& other) const {
  if (place.request != other.request) return false;
  if (place.segment == other.segment) return other.step <= place.step;
  const std::vector<Segment>& segments = requests_.at(place.request).segments;
  // What is before its segment's first event is before whatever is behind that segment's begin.
  const auto covers = [](const Reaches& reaches, const Reach& wanted) {
    const auto found = std::lower_bound(
        reaches.begin(), reaches.end(), wanted.segment,
        [](const Reach& reach, uint32_t segment) { return reach.segment < segment; });
    return found != reaches.end() && found->segment == wanted.segment && found->step >= wanted.step;
  };
  const Reaches& own = *segments[place.segment].before;
  if (other.step != 0) return covers(own, {.segment = other.segment, .step = other.step});
  const Reaches& its = *segments[other.segment].before;
  return std::all_of(its.begin(), its.end(),
                     [&](const Reach& reach) { return covers(own, reach); });
}

// Where the thread was before in this request, if nothing else has to be before what it does next.
bool Graph::resume(Thread thread, const std::vector<Place>& behind) {
  const auto found = std::find_if(behind.begin(), behind.end(), [&](const Place& one) {
    return std::all_of(behind.begin(), behind.end(),
                       [&](const Place& other) { return is_behind(one, other); });
  });
  if (found == behind.end()) return false;
  const Place last = *found;
  const Segment& segment = requests_.at(last.request).segments[last.segment];
  if (segment.has_thread || segment.thread != thread || segment.steps != last.step) return false;
  set(threads_, thread, last, limits_.threads);
  if (observer_ != nullptr) observer_->comes_back(last);
  return true;
}

void Graph::enter(Thread thread, std::span<const ContextKey> keys, EdgeClass how) {
  std::vector<Place> behind;
  GraphObserver::Crossing crossing{.how = how};
  for (const ContextKey& key : keys) {
    const Place* const place = place_of(keys_, key);
    if (place == nullptr || (!behind.empty() && place->request != behind[0].request)) continue;
    behind.push_back(*place);
    crossing.how = std::max(crossing.how, class_of(key, how));
    crossing.from.push_back({.place = *place, .key = key});
  }
  if (behind.empty()) ++counts_.missing;
  if (behind.empty() || is_weak(crossing.how)) return leave(threads_, thread);
  ++counts_.edges[static_cast<size_t>(crossing.how)];
  const Place* const own = place_of(threads_, thread);
  if (own != nullptr && own->request == behind[0].request) {
    const bool is_there = std::all_of(behind.begin(), behind.end(),
                                      [&](const Place& place) { return is_behind(*own, place); });
    if (is_there) return;
    crossing.own = *own;
    behind.push_back(*own);
  }
  if (resume(thread, behind)) return;
  go_on(thread, behind);
  if (observer_ == nullptr) return;
  // What its own process did before is told where that is all.
  const auto is_home = [](const GraphObserver::From& from) {
    return from.key && from.key->kind == ContextKey::Kind::Home;
  };
  if (!std::all_of(crossing.from.begin(), crossing.from.end(), is_home))
    std::erase_if(crossing.from, is_home);
  tell(thread, crossing);
}

void Graph::gather(Thread thread, ContextKey key) {
  const Place* const own = place_of(threads_, thread);
  if (own == nullptr) return;
  const Place place = *own;
  const Place* const before = place_of(keys_, key);
  const bool is_behind_it =
      before == nullptr || before->request != place.request || is_behind(place, *before);
  const std::optional<Place> both =
      is_behind_it ? std::optional(place) : add_segment({*before, place});
  if (!both) return;
  set(keys_, key, *both, limits_.contexts);
  if (observer_ == nullptr) return;
  if (!is_behind_it) observer_->comes_together(*both);
  observer_->puts(key, place);
}

void Graph::copy(ContextKey from, ContextKey to) {
  const Place* const place = place_of(keys_, from);
  if (place == nullptr) return leave(keys_, to);
  const Place at = *place;
  set(keys_, to, at, limits_.contexts);
  if (observer_ != nullptr) observer_->puts(to, at);
}

std::optional<uint64_t> Graph::request_of(Thread thread) {
  const Place* const place = place_of(threads_, thread);
  return place == nullptr ? std::nullopt : std::optional(place->request);
}

std::optional<uint64_t> Graph::request_of(ContextKey key) {
  const Place* const place = place_of(keys_, key);
  return place == nullptr ? std::nullopt : std::optional(place->request);
}

void Graph::lose() {
  for (std::list<uint64_t>* const ages : {&ages_, &idle_}) {
    while (!ages->empty())
      drop(ages->front(), false);
  }
  threads_ = {};
  keys_ = {};
}

// --- events --------------------------------------------------------------------------------------

std::optional<Moment> Graph::event(Thread thread) {
  Place* const place = place_of(threads_, thread);
  if (place == nullptr) {
    ++counts_.orphans;
    return std::nullopt;
  }
  Segment& segment = requests_.at(place->request).segments[place->segment];
  CLEW_ASSERT(place->step == segment.steps);
  place->step = ++segment.steps;
  Moment moment = *place;
  ++moment.number;
  return moment;
}

void Graph::count(Thread thread) {
  Place* const place = place_of(threads_, thread);
  CLEW_ASSERT(place != nullptr);
  ++place->number;
}

std::vector<Reach> Graph::before(const Moment& moment) const {
  const auto found = requests_.find(moment.request);
  if (found == requests_.end()) return {};
  CLEW_ASSERT(moment.segment < found->second.segments.size());
  CLEW_ASSERT(moment.step > 0);
  const Reaches& first = *found->second.segments[moment.segment].before;
  if (moment.step == 1) return first;
  return united(first, {{.segment = moment.segment, .step = moment.step - 1}});
}

}  // namespace clew::causal
