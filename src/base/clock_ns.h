// SPDX-License-Identifier: Apache-2.0
// A clock of the machine, in nanoseconds: CLOCK_MONOTONIC, CLOCK_REALTIME and their kin.
#pragma once

#include <cstdint>

#include <time.h>

namespace clew {

inline int64_t clock_ns(clockid_t clock) {
  timespec now{};
  (void)clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace clew
