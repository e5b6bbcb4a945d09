// SPDX-License-Identifier: Apache-2.0
#include "session/time_windows.h"

#include <algorithm>

#include "answer/columns.h"
#include "base/assert.h"
#include "query/window.h"
#include "stream/time.h"

namespace clew::session {
namespace {

// In the clock of the events. The epoch may be a file's, and any.
stream::Panes panes_of(const query::TimeWindow& window, int64_t epoch_ns) {
  return {.epoch_ns = static_cast<int64_t>(0 - static_cast<uint64_t>(epoch_ns)),
          .width_ns = static_cast<int64_t>(query::pane_ns(window))};
}

stream::WindowShape shape_of(const query::TimeWindow& window, int64_t late_ns,
                             const stream::Panes& panes) {
  const bool is_session = window.kind == query::WindowKind::Session;
  return {
      .kind = is_session ? stream::WindowShape::Kind::Session : stream::WindowShape::Kind::Hopping,
      .size_ns = static_cast<int64_t>(window.size_ns),
      .step_ns = static_cast<int64_t>(window.step_ns),
      .late_ns = late_ns,
      .panes = panes};
}

}  // namespace

TimeWindows::TimeWindows(const query::Query& query, int64_t epoch_ns)
    : epoch_ns_(epoch_ns),
      panes_(panes_of(*query.window, epoch_ns)),
      held_ns_(query.clustering ? static_cast<int64_t>(query.window->late_ns) : 0),
      windows_(stream::Windows::make(
          shape_of(*query.window, static_cast<int64_t>(query.window->late_ns) - held_ns_, panes_),
          answer::schema_of(query))) {}

void TimeWindows::begin(int64_t time_ns) {
  begun_ns_ = time_ns;
  next_ns_ = panes_.end(panes_.number_of(time_ns));
}

std::vector<stream::Given> TimeWindows::advance(int64_t time_ns) {
  next_ns_ = std::max(next_ns_, panes_.end(panes_.number_of(time_ns)));
  return windows_->advance(stream::plus(time_ns, -held_ns_));
}

output::Interval TimeWindows::interval_of(const std::vector<stream::Given>& given) {
  CLEW_ASSERT(!given.empty());
  output::Interval interval{.number = ++intervals_, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
  for (const stream::Given& each : given) {
    interval.partial = interval.partial || !each.is_over || each.begin_ns < begun_ns_;
    interval.begin_ns = std::min(interval.begin_ns, stream::plus(each.begin_ns, epoch_ns_));
    interval.end_ns = std::max(interval.end_ns, stream::plus(each.end_ns, epoch_ns_));
  }
  return interval;
}

}  // namespace clew::session
