// SPDX-License-Identifier: Apache-2.0
#include "engine/clock.h"

#include <cmath>
#include <limits>
#include <utility>

#include <x86intrin.h>

#include "base/assert.h"
#include "base/clock_ns.h"

namespace clew::engine {
namespace {

constexpr int kReadings = 16;

}  // namespace

ClockSample sample_clock() {
  ClockSample best{};
  uint64_t best_gap = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const uint64_t before = __rdtsc();
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    const uint64_t after = __rdtsc();
    if (after - before < best_gap) {
      best_gap = after - before;
      best = {.ticks = before + best_gap / 2, .monotonic_ns = now};
    }
  }
  return best;
}

// The tightest of a few readings, as above.
int64_t epoch_of_monotonic_ns() {
  int64_t best = 0;
  int64_t best_gap = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    const int64_t before = clock_ns(CLOCK_MONOTONIC);
    const int64_t wall = clock_ns(CLOCK_REALTIME);
    const int64_t gap = clock_ns(CLOCK_MONOTONIC) - before;
    if (gap >= best_gap) continue;
    best_gap = gap;
    best = wall - before - gap / 2;
  }
  return best;
}

Clock::Clock(const ClockSample& start) : base_(start) {
  ClockSample now = sample_clock();
  while (now.monotonic_ns - start.monotonic_ns < kBaselineMinNs) {
    now = sample_clock();
  }
  ns_per_tick_ = static_cast<double>(now.monotonic_ns - start.monotonic_ns) /
                 static_cast<double>(now.ticks - start.ticks);
}

uint64_t Clock::multiplier(uint32_t shift) const {
  return static_cast<uint64_t>(std::llround(std::ldexp(ns_per_tick_, static_cast<int>(shift))));
}

int64_t Clock::monotonic_ns(uint64_t ticks) const {
  const auto span = static_cast<int64_t>(ticks - base_.ticks);
  return base_.monotonic_ns + std::llround(static_cast<double>(span) * ns_per_tick_);
}

void Counter::note(const ClockSample& now) {
  now_ = now;
  if (now.monotonic_ns - next_base_.monotonic_ns <= kBaselineNs) return;
  base_ = std::exchange(next_base_, now);
}

uint64_t Counter::ticks_at(int64_t monotonic_ns) const {
  __extension__ using Wide = __int128;
  CLEW_ASSERT(now_.monotonic_ns > base_.monotonic_ns);
  const auto ticks = static_cast<Wide>(now_.ticks - base_.ticks);
  const Wide before = Wide{now_.monotonic_ns} - monotonic_ns;
  return now_.ticks -
         static_cast<uint64_t>(before * ticks / (now_.monotonic_ns - base_.monotonic_ns));
}

}  // namespace clew::engine
