// SPDX-License-Identifier: Apache-2.0
// Rows of what was begun, by key, until it is ended: at most one for each key, as what has a key
// that is begun again has been ended unseen. There can be ten million of them, so a row of a few
// numbers takes some 60 bytes with all that finds it; texts and stacks are held once each
// (value_pool.h).
//
// Begins and ends come in the order of their times but for some that are late: what ends a row
// stays known until nothing earlier can come (pass()), so that a begin that is read behind its end
// begins nothing. So the order in which they come makes no row, and no row too few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/value.h"
#include "stream/value_pool.h"

namespace clew::stream {

class OpenRows {
 public:
  struct Shape {
    size_t keys = 1;
    size_t width = 0;
  };
  struct Limits {
    size_t rows = 10'000'000;
    size_t value_bytes = size_t{256} << 20;  // Of texts and stacks, of known ends too.
    size_t ended = 1'000'000;                // Ends that are known.
  };
  struct Counts {
    uint64_t ended_unseen = 0;  // Ends of what nobody has seen to begin.
    uint64_t again = 0;         // Begins with a key whose row had not been seen to end.
    uint64_t no_room = 0;       // Begins for which there was none.
  };

  OpenRows(Shape shape, Limits limits);

  // Keys are uint64_t or text; one that is anything else is none, and nothing is done.
  void begin(std::span<const aggregate::Value> key, int64_t time_ns,
             std::span<const aggregate::Value> row);
  void end(std::span<const aggregate::Value> key, int64_t time_ns);
  // All that happened before has come.
  void pass(int64_t until_ns);
  // All has.
  void drain();

  // The places of what was begun by then, from the oldest one on; valid until the next begin or
  // end.
  [[nodiscard]] std::vector<uint32_t> begun_until(int64_t time_ns) const;
  [[nodiscard]] int64_t time_of(uint32_t place) const {
    return static_cast<int64_t>(words(place)[0]);
  }
  void read(uint32_t place, std::span<aggregate::Value> row) const;

  [[nodiscard]] size_t size() const { return open_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  // Of its rows and all that finds them.
  [[nodiscard]] size_t bytes() const;

 private:
  // What a place is, and how a word is to be read.
  enum class State : uint8_t { Free, Open, Ended, EndedUnseen };
  enum class Form : uint8_t { Null, Signed, Unsigned, Float, Shared };
  struct Slot {
    uint32_t hash = 0;
    uint32_t place = kNone;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  [[nodiscard]] uint64_t* words(uint32_t place) const;
  [[nodiscard]] uint8_t* tags(uint32_t place) const;
  [[nodiscard]] State state(uint32_t place) const { return static_cast<State>(tags(place)[0]); }
  void set_state(uint32_t place, State state) { tags(place)[0] = static_cast<uint8_t>(state); }
  void write(uint32_t place, size_t cell, const aggregate::Value& value);
  void forget(uint32_t place, size_t cell);
  void write_row(uint32_t place, int64_t time_ns, std::span<const aggregate::Value> row);
  void forget_row(uint32_t place);
  [[nodiscard]] bool has_key(uint32_t place, std::span<const aggregate::Value> key) const;
  [[nodiscard]] bool has_room() const;

  void begin_again(uint32_t place, int64_t time_ns, std::span<const aggregate::Value> row);
  void end_again(uint32_t place, int64_t time_ns);
  void note_end(uint32_t place, int64_t time_ns);
  void forget_first_end();

  [[nodiscard]] uint32_t find(std::span<const aggregate::Value> key, uint32_t hash) const;
  uint32_t add(std::span<const aggregate::Value> key, uint32_t hash);
  void remove(uint32_t place);
  void remove_slot(size_t slot);
  void grow();

  Shape shape_;
  Limits limits_;
  uint64_t seed_;
  size_t row_words_;
  std::vector<std::unique_ptr<uint64_t[]>> blocks_;
  uint32_t places_ = 0;  // That were ever in use.
  std::vector<uint32_t> free_;
  std::vector<Slot> slots_;  // By hash: a place stands at its slot, or behind it without a gap.
  size_t used_slots_ = 0;
  ValuePool pool_;
  std::deque<std::pair<int64_t, uint32_t>> ends_;  // Their times and places, mostly in order.
  size_t open_ = 0;
  Counts counts_;
};

}  // namespace clew::stream
