// SPDX-License-Identifier: Apache-2.0
// Windows of time (Query::window): the panes of which they consist, and what stands for them in the
// expressions of a query.
//
// Panes are slots of time of the same width (stream/pane.h): a window is one or several of them,
// and an event belongs to a pane by its own time, which the probe reads. So the pane's number is a
// key of the group like any other, wherever the event is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "query/query.h"

namespace clew::query {

inline constexpr uint64_t kLateUsualNs = 5'000'000'000;
inline constexpr uint64_t kPaneMinNs = 1'000'000;
inline constexpr uint64_t kWindowMaxNs = 366ULL * 24 * 3'600 * 1'000'000'000;
inline constexpr uint64_t kPanesMax = 10'000;  // Of a window.

inline constexpr std::string_view kWindowName = "window";  // window.start, window.end
// The last column of an answer by windows: how often this window was given, 1, 2, …
inline constexpr std::string_view kVersionColumn = "version";

// Where they stand in a query with a window.
inline constexpr uint16_t kPaneValue = 0;
inline constexpr uint16_t kFirstTimeAggregate = 0;  // Of sessions.
inline constexpr uint16_t kLastTimeAggregate = 1;

// Of hopping windows the longest of which both the size and the step are multiples. Of sessions the
// gap: two events in one pane are never further apart.
uint64_t pane_ns(const TimeWindow& window);

// The number of an event's pane, as time of which number 0 began so long before the monotonic
// clock's 0.
Expression pane_number(uint64_t pane_ns, int64_t epoch_ns, Span span);
// Panes are those of the time of day, which is the monotonic clock + `epoch_ns`. Until this is said
// they are those of the monotonic clock.
void set_panes(Query& query, int64_t epoch_ns);

// Times of events become those of a clock that is so far ahead of theirs: for machines whose
// monotonic clocks began at other times. Panes are left alone.
void set_times_ahead(Query& query, int64_t ahead_ns);

// The same of the rows of joined events, whose times are inputs.
void set_joined_times_ahead(Query& query, int64_t ahead_ns);

// window.start, of a row.
Expression window_start(Span span);
// Whether it occurs.
bool uses_window(const Expression& expression);

}  // namespace clew::query
