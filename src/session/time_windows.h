// SPDX-License-Identifier: Apache-2.0
// The windows of time of a session's query: between its tables, whose first key is the number of a
// pane, and the answer, whose rows have the begin of their window there.
//
// Times are ns of CLOCK_MONOTONIC as events have them; panes are those of the time of day.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aggregate/table.h"
#include "output/row_sink.h"
#include "query/query.h"
#include "stream/pane.h"
#include "stream/window.h"

namespace clew::session {

class TimeWindows {
 public:
  // The query has a window. `epoch_ns`: the time of day = these times + this.
  TimeWindows(const query::Query& query, int64_t epoch_ns);

  // Windows that began before have not seen all that happened in them.
  void begin(int64_t time_ns);
  // The end of the pane that is counted now: then it is time for advance().
  [[nodiscard]] int64_t next_ns() const { return next_ns_; }

  void add(const aggregate::Table& counted) { windows_->add(counted); }
  // All that happened before has been added, but for what is late. What is to be given.
  std::vector<stream::Given> advance(int64_t time_ns);
  std::vector<stream::Given> finish() { return windows_->finish(); }
  [[nodiscard]] uint64_t late() const { return windows_->late(); }
  [[nodiscard]] uint64_t dropped() const { return windows_->dropped(); }

  // What was given at once is one interval of the answer.
  [[nodiscard]] output::Interval interval_of(const std::vector<stream::Given>& given);

 private:
  int64_t epoch_ns_;
  stream::Panes panes_;
  int64_t held_ns_;  // Who needs each window once gets it when it is closed for late data.
  std::unique_ptr<stream::Windows> windows_;
  int64_t begun_ns_ = INT64_MIN;
  int64_t next_ns_ = INT64_MIN;
  uint64_t intervals_ = 0;
};

}  // namespace clew::session
