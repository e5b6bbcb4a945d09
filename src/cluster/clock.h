// SPDX-License-Identifier: Apache-2.0
// The clocks that members of a cluster go by. Tests have their own.
#pragma once

#include <cstdint>

#include "base/clock_ns.h"

namespace clew::cluster {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual int64_t monotonic_ns() const = 0;
  [[nodiscard]] virtual int64_t realtime_ns() const = 0;
};

class MachineClock final : public Clock {
 public:
  [[nodiscard]] int64_t monotonic_ns() const override { return clock_ns(CLOCK_MONOTONIC); }
  [[nodiscard]] int64_t realtime_ns() const override { return clock_ns(CLOCK_REALTIME); }
};

inline constexpr int64_t kSecond = 1'000'000'000;

}  // namespace clew::cluster
