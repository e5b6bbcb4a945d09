// SPDX-License-Identifier: Apache-2.0
// How members of a cluster wait: for descriptors, and for a time by CLOCK_MONOTONIC.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <poll.h>

#include "base/clock_ns.h"
#include "cluster/clock.h"

namespace clew::cluster {

// Until one is readable, or it is time; at most a fifth of a second.
inline void wait_for(std::vector<pollfd> descriptors, int64_t until_ns) {
  const int64_t left = std::clamp<int64_t>(until_ns - clock_ns(CLOCK_MONOTONIC), 0, kSecond / 5);
  const timespec timeout{.tv_sec = left / kSecond, .tv_nsec = left % kSecond};
  (void)ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
}

inline bool is_readable(int descriptor) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) == 1;
}

}  // namespace clew::cluster
