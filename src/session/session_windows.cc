// SPDX-License-Identifier: Apache-2.0
// A session whose query has windows of time: when they are over, and what is given of them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/evaluate.h"
#include "session/session.h"

namespace clew::session {

// As events have it.
int64_t Session::time_now() const {
  return static_cast<int64_t>(input_.clock.monotonic_ns(input_.sources[0]->now()));
}

// All that happened before is counted: in tables at once, else once a whole round of reading has
// begun after it (collect/event_merge.h), and what it is joined with is there. A file has one event
// behind the other.
int64_t Session::complete_until() {
  if (!has_events()) return time_now();
  const std::optional<uint64_t> ticks = is_in_order() ? taken_ticks_ : complete_ticks_;
  if (!ticks) return INT64_MIN;
  const auto until = static_cast<int64_t>(input_.clock.monotonic_ns(*ticks));
  if (held_.empty()) return until;
  const aggregate::Value& first_held = held_.at(0)[plan::Joined::kTime];
  return std::min(until, static_cast<int64_t>(plan::bits_of(first_held)));
}

// Once it is over, there may be a round of reading to wait for.
Session::Time::time_point Session::next_pane() {
  constexpr int64_t kRoundNs = 1'000'000;
  return Time::now() +
         std::chrono::nanoseconds(std::max(windows_->next_ns() - time_now(), kRoundNs));
}

// A session without an end has no more than a pane, or few, in its tables.
Expected<void> Session::give_ended() {
  const int64_t until = complete_until();
  return until < windows_->next_ns() ? Expected<void>{} : give_windows(until);
}

Expected<void> Session::give_windows(int64_t until) {
  windows_->add(joins_ ? joined_table(true) : CLEW_TRY(merged(true)));
  give(windows_->advance(until));
  return {};
}

void Session::give(const std::vector<stream::Given>& given) {
  if (given.empty()) return;
  for (const stream::Given& each : given) {
    to_sink_.set_version(each.version);
    answer_.take(each.table);
  }
  if (answer_.waits_for_end()) return;
  tell_losses();
  input_.sink.end_interval(windows_->interval_of(given));
  input_.sink.flush();
}

// Everything has been read.
Expected<void> Session::give_last_windows() {
  CLEW_TRY(give_windows(is_in_order() ? complete_until() : time_now()));
  give(windows_->finish());
  return {};
}

}  // namespace clew::session
