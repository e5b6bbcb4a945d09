// SPDX-License-Identifier: Apache-2.0
// Puts events of many threads into the order of their times. A thread's ring is in order by itself;
// a round of reading takes the threads one after the other, so an event is held back until a whole
// later round has begun: by then every earlier event is in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/event_batch.h"

namespace clew::collect {

// More held events than this are released at once, whatever their time.
inline constexpr size_t kEventsHeldMax = size_t{1} << 20;

class EventMerge {
 public:
  // Takes the events of one round; `round_start` is the time stamp counter before its first read.
  void add(const EventBatch& round, uint64_t round_start);
  // Takes events that were read outside a round (of slots that were freed).
  void add_extra(const EventBatch& events) { held_.append(events); }
  // The events that are complete, in order of time (ties: in order of arrival).
  EventBatch take_ready();
  // Everything; call once at the end.
  EventBatch take_all();
  [[nodiscard]] size_t held() const { return held_.size(); }
  // Events that came later than a later one had left (a thread slept between its time stamp and
  // its store). They are passed on, out of order.
  [[nodiscard]] uint64_t late() const { return late_; }

 private:
  EventBatch take_until(uint64_t watermark);

  EventBatch held_;
  uint64_t round_start_ = 0;
  uint64_t watermark_ = 0;
  uint64_t last_taken_ = 0;
  uint64_t late_ = 0;
};

}  // namespace clew::collect
