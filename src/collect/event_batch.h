// SPDX-License-Identifier: Apache-2.0
// Events that were taken from rings, as columns: row i is event i. Fields are words; what they mean
// is known to the plan (by shape).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace clew::collect {

// How many words an event has: events with long text have as many as the text needs.
struct EventWords {
  uint32_t least = 0;
  uint32_t most = 0;

  [[nodiscard]] bool allow(uint64_t words) const { return words >= least && words <= most; }
  [[nodiscard]] bool vary() const { return least != most; }
  bool operator==(const EventWords&) const = default;
};

struct Event {
  uint32_t shape = 0;  // Which probe's fields (index into SessionView::event_words).
  uint32_t process = 0;
  uint32_t tid = 0;
  uint64_t time = 0;                  // Time stamp counter.
  std::span<const uint64_t> words{};  // Fields; borrowed from the batch.
};

// The upper half of Event::process is the number of the member of the session that it comes from
// (session/numbers.h), the lower half abi::SlotControl::process.
inline constexpr uint32_t kMemberShift = 16;
inline uint32_t member_of(const Event& event) {
  return event.process >> kMemberShift;
}
inline uint32_t process_of(const Event& event) {
  return event.process & ((1U << kMemberShift) - 1);
}

// Events of a batch, by index.
struct EventRange {
  size_t begin = 0;
  size_t end = 0;
  [[nodiscard]] bool empty() const { return begin == end; }
};

class EventBatch {
 public:
  void push(const Event& event);
  void clear();
  // `process_bits` are added to the number of each event's process.
  void append(const EventBatch& other, uint32_t process_bits = 0);
  [[nodiscard]] size_t size() const { return times_.size(); }
  [[nodiscard]] bool empty() const { return times_.empty(); }
  [[nodiscard]] Event at(size_t index) const;

  // The columns.
  [[nodiscard]] std::span<const uint64_t> times() const { return times_; }
  [[nodiscard]] std::span<const uint32_t> shapes() const { return shapes_; }
  [[nodiscard]] std::span<const uint32_t> processes() const { return processes_; }
  [[nodiscard]] std::span<const uint32_t> tids() const { return tids_; }
  [[nodiscard]] std::span<const uint64_t> words() const { return words_; }
  bool operator==(const EventBatch&) const = default;

 private:
  std::vector<uint64_t> times_;
  std::vector<uint32_t> shapes_;
  std::vector<uint32_t> processes_;
  std::vector<uint32_t> tids_;
  std::vector<uint64_t> word_ends_;  // End of event i in words_; its start is the end of i - 1.
  std::vector<uint64_t> words_;
};

}  // namespace clew::collect
