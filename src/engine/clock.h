// SPDX-License-Identifier: Apache-2.0
// The rate of the time stamp counter against CLOCK_MONOTONIC. Probes read the counter (a system
// call or vDSO call would need a stack and a library); everybody else speaks nanoseconds.
#pragma once

#include <cstdint>

namespace clew::engine {

// Nanoseconds = ticks * multiplier >> kTickShift. With 20 bits the rounding error of the rate is
// below 3e-6; longer spans than an hour are scaled in two parts (plan/coder.h, scale_ticks).
inline constexpr uint32_t kTickShift = 20;

struct ClockSample {
  uint64_t ticks;
  int64_t monotonic_ns;
};

// The tightest of a few readings of both clocks (tens of nanoseconds apart).
ClockSample sample_clock();

// CLOCK_REALTIME - CLOCK_MONOTONIC, in nanoseconds.
int64_t epoch_of_monotonic_ns();

class Clock {
 public:
  // `start` should be old: the error of the rate is about 50 ns / (now - start). Waits, busy, until
  // the distance is kBaselineMinNs.
  explicit Clock(const ClockSample& start);

  // Nanoseconds of a tick, times 2^shift.
  [[nodiscard]] uint64_t multiplier(uint32_t shift = kTickShift) const;
  // CLOCK_MONOTONIC in nanoseconds at `ticks`, for events.
  [[nodiscard]] int64_t monotonic_ns(uint64_t ticks) const;

  static constexpr int64_t kBaselineMinNs = 10'000'000;

 private:
  ClockSample base_{};
  double ns_per_tick_ = 0;
};

// What the counter was at moments of CLOCK_MONOTONIC, for events of the kernel among those of
// processes. A thread needs 200 ns from a call's return to a probe of its own, so this has to be
// better than that, also where the tracer gets no processor for a while: the rate is that of the
// last second, from its samples.
class Counter {
 public:
  // `start` should be some milliseconds old when the first moment is asked for.
  explicit Counter(const ClockSample& start) : base_(start), next_base_(start), now_(start) {}
  // To be called in front of each round of reading; later than all before.
  void note(const ClockSample& now);
  // Of moments around the last sample: the error grows with the distance.
  [[nodiscard]] uint64_t ticks_at(int64_t monotonic_ns) const;

  static constexpr int64_t kBaselineNs = 500'000'000;

 private:
  ClockSample base_;       // One to two times kBaselineNs before now_, or the start.
  ClockSample next_base_;  // At most kBaselineNs before now_.
  ClockSample now_;
};

}  // namespace clew::engine
