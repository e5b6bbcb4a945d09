// SPDX-License-Identifier: Apache-2.0
#include "recorder/snap_clock.h"

#include <cmath>

namespace clew::recorder {

SnapClock::SnapClock(const Snap& snap) : taken_(snap.taken.ticks) {
  const ClockPair& began = snap.began;
  if (began.ticks >= taken_ || began.time_ns >= snap.taken.time_ns) return;
  ns_per_tick_ = static_cast<double>(snap.taken.time_ns - began.time_ns) /
                 static_cast<double>(taken_ - began.ticks);
}

std::optional<int64_t> SnapClock::ns_at(std::optional<uint64_t> ticks) const {
  constexpr double kYearsNs = 1e18;  // More is no time of a process.
  if (!ticks || ns_per_tick_ == 0) return std::nullopt;
  const double ns = static_cast<double>(static_cast<int64_t>(*ticks - taken_)) * ns_per_tick_;
  return std::abs(ns) < kYearsNs ? std::optional(std::llround(ns)) : std::nullopt;
}

}  // namespace clew::recorder
