// SPDX-License-Identifier: Apache-2.0
#include "causal/stamp.h"

namespace clew::causal {
namespace {

bool are_halves(const Interval& left, const Interval& right) {
  const bool is_left = left.depth > 0 && (left.start & left.size()) == 0;
  return is_left && left.depth == right.depth && left.end() == right.start;
}

// Some of the intervals may become one only after all of them are there.
using TwoLists = FixedList<Interval, 2 * kIntervalsMax>;

// Takes an interval behind all others; two halves become their whole.
void push_merged(TwoLists& list, Interval next) {
  while (!list.empty() && are_halves(list.back(), next)) {
    next = {.start = list.back().start, .depth = static_cast<uint8_t>(next.depth - 1)};
    list.cut(list.size() - 1);
  }
  CLEW_ASSERT(list.push(next));
}

// Passes over two functions at once: each part of the line where both are constant.
class BothHeights {
 public:
  // Begins where they differ first, `same` steps from the start: most have much in common.
  BothHeights(std::span<const Step> a, std::span<const Step> b)
      : same(static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin())),
        a_(a.subspan(same)),
        b_(b.subspan(same)) {
    if (same > 0) height_a = height_b = a[same - 1].height;
  }

  // The next place where one of them changes; false behind the last.
  bool next() {
    if (a_.empty() && b_.empty()) return false;
    const uint64_t next_a = a_.empty() ? kLineEnd : a_.front().start;
    const uint64_t next_b = b_.empty() ? kLineEnd : b_.front().start;
    start = std::min(next_a, next_b);
    if (next_a == start) height_a = take(a_);
    if (next_b == start) height_b = take(b_);
    return true;
  }

  size_t same;
  uint64_t start = 0;
  uint32_t height_a = 0;
  uint32_t height_b = 0;

 private:
  static uint32_t take(std::span<const Step>& steps) {
    const uint32_t height = steps.front().height;
    steps = steps.subspan(1);
    return height;
  }

  std::span<const Step> a_;
  std::span<const Step> b_;
};

// What a function does in an interval, and right behind it.
struct Extent {
  uint32_t lowest = kHeightMax;
  uint32_t highest = 0;
  uint32_t behind = 0;
};

Extent extent_of(std::span<const Step> steps, const Interval& interval) {
  Extent extent;
  uint32_t height = 0;
  const auto take = [&extent](uint32_t inside) {
    extent.lowest = std::min(extent.lowest, inside);
    extent.highest = std::max(extent.highest, inside);
  };
  for (const Step& step : steps) {
    if (step.start > interval.end()) break;
    if (step.start > interval.start) take(height);  // It reached into the interval.
    height = step.height;
    if (step.start == interval.end()) {
      extent.behind = height;
      return extent;
    }
  }
  take(height);
  extent.behind = height;
  return extent;
}

}  // namespace

// --- ids -----------------------------------------------------------------------------------------

Id Id::whole() {
  Id id;
  CLEW_ASSERT(id.intervals_.push({.start = 0, .depth = 0}));
  return id;
}

unsigned Id::depth() const {
  unsigned depth = kDepthMax;
  for (const Interval& interval : intervals_)
    depth = std::min<unsigned>(depth, interval.depth);
  return depth;
}

Id Id::split(unsigned levels) {
  Id given;
  if (is_anonymous()) return given;
  const auto is_larger = [](const Interval& a, const Interval& b) { return a.depth < b.depth; };
  Interval* const largest = std::min_element(intervals_.begin(), intervals_.end(), is_larger);
  const size_t room = kIntervalsMax - intervals_.size() + 1;
  const auto cuts = std::min<size_t>({levels, room, kDepthMax - largest->depth});
  Interval* smaller = nullptr;
  for (Interval& interval : intervals_) {
    const bool is_candidate = &interval != largest && interval.depth <= largest->depth + cuts;
    if (is_candidate && (smaller == nullptr || interval.depth >= smaller->depth))
      smaller = &interval;
  }
  if (smaller != nullptr) {
    CLEW_ASSERT(given.intervals_.push(*smaller));
    CLEW_ASSERT(intervals_.replace(static_cast<size_t>(smaller - intervals_.begin()), 1, {}));
  } else if (cuts > 0) {
    given = cut_off(static_cast<size_t>(largest - intervals_.begin()), cuts);
  }
  return given;
}

// The half in front stays, of the other one the half in front, and so on; the rest goes.
Id Id::cut_off(size_t index, size_t cuts) {
  FixedList<Interval, kIntervalsMax> kept;
  Interval rest = intervals_[index];
  for (size_t cut = 0; cut < cuts; ++cut) {
    ++rest.depth;
    CLEW_ASSERT(kept.push(rest));
    rest.start = rest.end();
  }
  CLEW_ASSERT(intervals_.replace(index, 1, kept.values()));
  Id given;
  CLEW_ASSERT(given.intervals_.push(rest));
  return given;
}

void Id::unite(const Id& other) {
  TwoLists sum;
  auto a = intervals();
  auto b = other.intervals();
  while (!a.empty() || !b.empty()) {
    const bool takes_a = b.empty() || (!a.empty() && a.front().start < b.front().start);
    auto& from = takes_a ? a : b;
    push_merged(sum, from.front());
    from = from.subspan(1);
  }
  while (sum.size() > kIntervalsMax) {
    const Interval* const smallest = std::ranges::max_element(sum, {}, &Interval::depth);
    CLEW_ASSERT(sum.replace(static_cast<size_t>(smallest - sum.begin()), 1, {}));
  }
  intervals_.clear();
  CLEW_ASSERT(intervals_.append(sum.values()));
}

bool Id::overlaps(const Id& other) const {
  auto a = intervals();
  auto b = other.intervals();
  while (!a.empty() && !b.empty()) {
    if (a.front().end() <= b.front().start) {
      a = a.subspan(1);
    } else if (b.front().end() <= a.front().start) {
      b = b.subspan(1);
    } else {
      return true;
    }
  }
  return false;
}

bool Id::append(const Interval& next) {
  const bool is_dyadic = next.depth <= kDepthMax && next.start % next.size() == 0;
  if (!is_dyadic || next.start >= kLineEnd) return false;
  if (intervals_.empty()) return intervals_.push(next);
  const Interval& last = intervals_.back();
  const bool follows = last.end() <= next.start && !are_halves(last, next);
  return follows && intervals_.push(next);
}

// --- heights -------------------------------------------------------------------------------------

bool Heights::push_change(uint64_t start, uint32_t height) {
  const uint32_t before = steps_.empty() ? 0 : steps_.back().height;
  return height == before || steps_.push({.start = start, .height = height});
}

bool Heights::raise(const Interval& interval) {
  const Extent extent = extent_of(steps(), interval);
  const bool is_flat = extent.lowest == extent.highest;
  if (is_flat && extent.highest == kHeightMax) return false;
  const auto index_of = [this](uint64_t start) {  // Of the first step from there on.
    const auto* const at = std::ranges::lower_bound(steps_, start, {}, &Step::start);
    return static_cast<size_t>(at - steps_.begin());
  };
  const size_t from = index_of(interval.start);
  const size_t to = index_of(interval.end() + 1);
  const uint32_t before = from == 0 ? 0 : steps_[from - 1].height;
  const uint32_t height = extent.highest + (is_flat ? 1 : 0);
  FixedList<Step, 2> raised;
  if (height != before) CLEW_ASSERT(raised.push({.start = interval.start, .height = height}));
  if (height != extent.behind && interval.end() < kLineEnd)
    CLEW_ASSERT(raised.push({.start = interval.end(), .height = extent.behind}));
  return steps_.replace(from, to - from, raised.values());
}

bool Heights::join(const Heights& other) {
  Heights joined;
  BothHeights both(steps(), other.steps());
  CLEW_ASSERT(joined.steps_.append(steps().first(both.same)));
  while (both.next()) {
    if (!joined.push_change(both.start, std::max(both.height_a, both.height_b))) return false;
  }
  *this = joined;
  return true;
}

bool Heights::is_within(const Heights& other) const {
  BothHeights both(steps(), other.steps());
  while (both.next()) {
    if (both.height_a > both.height_b) return false;
  }
  return true;
}

uint32_t Heights::lowest(const Interval& interval) const {
  return extent_of(steps(), interval).lowest;
}

bool Heights::append(const Step& next) {
  const bool follows =
      steps_.empty() ? next.height > 0
                     : steps_.back().start < next.start && steps_.back().height != next.height;
  return follows && next.start < kLineEnd && steps_.push(next);
}

// --- both ----------------------------------------------------------------------------------------

bool Stamp::join(const Stamp& other) {
  if (!heights.join(other.heights)) return false;
  id.unite(other.id);
  return true;
}

}  // namespace clew::causal
