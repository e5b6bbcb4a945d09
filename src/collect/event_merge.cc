// SPDX-License-Identifier: Apache-2.0
#include "collect/event_merge.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace clew::collect {

void EventMerge::add(const EventBatch& round, uint64_t round_start) {
  held_.append(round);
  watermark_ = std::exchange(round_start_, round_start);
}

EventBatch EventMerge::take_ready() {
  if (held_.size() > kEventsHeldMax) return take_all();
  return take_until(watermark_);
}

EventBatch EventMerge::take_all() {
  return take_until(std::numeric_limits<uint64_t>::max());
}

EventBatch EventMerge::take_until(uint64_t watermark) {
  std::vector<size_t> ready;
  EventBatch rest;
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_.times()[i] <= watermark) {
      ready.push_back(i);
    } else {
      rest.push(held_.at(i));
    }
  }
  const auto times = held_.times();
  std::stable_sort(ready.begin(), ready.end(),
                   [times](size_t a, size_t b) { return times[a] < times[b]; });
  CLEW_ASSERT(ready.size() + rest.size() == held_.size());
  EventBatch result;
  for (const size_t i : ready) {
    if (times[i] < last_taken_) ++late_;
    result.push(held_.at(i));
  }
  if (!ready.empty()) last_taken_ = std::max(last_taken_, times[ready.back()]);
  held_ = std::move(rest);
  return result;
}

}  // namespace clew::collect
