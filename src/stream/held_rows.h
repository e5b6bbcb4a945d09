// SPDX-License-Identifier: Apache-2.0
// Rows of one width that are held for a time, to be found by a key: a hundred bytes each and not
// the values themselves, as there are up to a million. A row that is removed leaves its place to
// another one, so the memory is that of the most rows at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/value.h"

namespace clew::stream {

// When an event happened, and its number in the order of coming.
struct Moment {
  static constexpr uint64_t kNever = UINT64_MAX;

  int64_t time_ns = 0;
  uint64_t number = kNever;

  [[nodiscard]] bool is_never() const { return number == kNever; }
  bool operator==(const Moment&) const = default;
};

// Keys come from programs that are traced: they should not be able to choose their buckets.
uint64_t random_seed();
// What a key is found by. Text and integers have none in common.
uint64_t hash_of_key(std::span<const aggregate::Value> key, uint64_t seed);

class HeldRows {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Shape {
    size_t width = 0;
    size_t moments = 1;
    size_t keys = 1;
    size_t first_by = 0;  // The moment that says which row is the first.
  };
  struct Row {
    std::span<const aggregate::Value> values;
    std::span<const Moment> moments;
    std::span<const aggregate::Value> key;
    uint64_t hash = 0;  // Of the key.
  };

  explicit HeldRows(Shape shape);
  ~HeldRows();
  HeldRows(const HeldRows&) = delete;
  HeldRows& operator=(const HeldRows&) = delete;

  // A place is a row's as long as it is held.
  uint32_t add(const Row& row);
  // The one whose time is the least; none: there is none.
  [[nodiscard]] uint32_t first() const;
  void remove_first();

  // The rows with this key, from the latest one on; then before() of each.
  struct Rows {
    uint32_t last = kNone;
    bool is_sorted = true;  // No row is later than the one in front of it.
  };
  [[nodiscard]] Rows rows_of(std::span<const aggregate::Value> key, uint64_t hash) const;
  [[nodiscard]] uint32_t before(uint32_t place) const { return links_[place].before; }

  void read(uint32_t place, std::span<aggregate::Value> values) const;
  void read_key(uint32_t place, std::span<aggregate::Value> key) const;
  [[nodiscard]] uint64_t hash_of(uint32_t place) const { return groups_[links_[place].group].hash; }
  [[nodiscard]] Moment moment(uint32_t place, size_t index) const;
  [[nodiscard]] int64_t time_of(uint32_t place) const {
    return moment(place, shape_.first_by).time_ns;
  }
  // Whether it has been joined.
  void set_joined(uint32_t place) { links_[place].is_joined = true; }
  [[nodiscard]] bool is_joined(uint32_t place) const { return links_[place].is_joined; }

  [[nodiscard]] size_t size() const { return links_.size() - free_.size(); }
  // Of its rows and all that finds them, but for text of more than 8 bytes.
  [[nodiscard]] size_t bytes() const;

 private:
  struct Link {
    uint32_t before = kNone;
    uint32_t behind = kNone;
    uint32_t group = kNone;
    bool is_joined = false;
  };
  // All rows with one key.
  struct Group {
    uint64_t hash = 0;
    uint32_t last = kNone;
    uint32_t next = kNone;  // In the bucket, or among the free ones.
    bool is_sorted = true;
  };
  using Timed = std::pair<int64_t, uint32_t>;

  [[nodiscard]] uint64_t* words(uint32_t place) const;
  [[nodiscard]] uint8_t* tags(uint32_t place) const;
  [[nodiscard]] size_t cells() const { return shape_.width + shape_.keys; }
  void write(uint32_t place, size_t cell, const aggregate::Value& value);
  void read_cells(uint32_t place, size_t first, std::span<aggregate::Value> values) const;
  void forget(uint32_t place, size_t cell);
  [[nodiscard]] bool has_key(uint32_t place, std::span<const aggregate::Value> key) const;
  [[nodiscard]] uint32_t find_group(std::span<const aggregate::Value> key, uint64_t hash) const;
  uint32_t add_group(uint64_t hash);
  void remove_group(uint32_t group);
  void grow();
  uint32_t new_place();
  void link(uint32_t place, uint32_t group);
  void unlink(uint32_t place);
  void put_in_order(uint32_t place);

  Shape shape_;
  size_t row_words_;
  std::vector<std::unique_ptr<uint64_t[]>> blocks_;
  std::vector<Link> links_;  // By place.
  std::vector<uint32_t> free_;
  std::vector<uint32_t> buckets_;
  std::vector<Group> groups_;
  uint32_t free_group_ = kNone;
  size_t group_count_ = 0;
  // Most rows come in the order of their times.
  std::deque<uint32_t> in_order_;
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> out_of_order_;
};

}  // namespace clew::stream
