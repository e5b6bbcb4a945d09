// SPDX-License-Identifier: Apache-2.0
// Rows of single events as a table, for whoever takes them elsewhere: so they go through a cluster
// as groups do, by the same bytes, and are merged by the same rules.
//
// The first keys of a row are when its event happened, whose it is, and its number there; then come
// the row's values. There are no aggregates. So each event is a row of its own, rows of one table
// stand in the order of their times, and one that comes twice is there once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "aggregate/table.h"
#include "answer/row_batch.h"
#include "base/error.h"
#include "query/query.h"

namespace clew::answer {

inline constexpr size_t kEventOwnKeys = 3;

// What of a row goes into the table.
struct EventLayout {
  size_t width = 0;            // So many of its first values,
  std::optional<size_t> time;  // and when it happened; none: rows have no time of their own.
};

struct EventLimits {
  size_t bytes = size_t{4} << 20;  // Of one table, as bytes.
  std::optional<uint64_t> rows{};  // In all: more are not wanted.
};

class EventTable {
 public:
  // `query`: the rows' values are its. Times go into the table so far ahead of what they are here.
  EventTable(const query::Query& query, EventLayout layout, int64_t ahead_ns,
             EventLimits limits = {});

  // Takes the rows away. Those that find no room are dropped.
  void add(RowBatch& rows);
  // What was added since the last time.
  aggregate::Table take();
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

 private:
  void add(std::span<aggregate::Value> row);

  EventLayout layout_;
  EventLimits limits_;
  int64_t ahead_ns_;
  std::vector<bool> are_times_;  // Of the values.
  uint64_t session_;             // Any number that no other session has.
  uint64_t number_ = 0;          // Of rows.
  size_t bytes_ = 0;             // Of this table.
  int64_t last_ns_ = 0;
  uint64_t dropped_ = 0;
  aggregate::Table table_;
};

// The rows of such a table in their order, some at a time. Refused, and none is given: its rows do
// not have the values of the query.
Expected<void> give_events(const aggregate::Table& table, const query::Query& query,
                           const std::function<void(RowBatch&)>& take);

}  // namespace clew::answer
