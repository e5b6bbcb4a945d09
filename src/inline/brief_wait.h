// SPDX-License-Identifier: Apache-2.0
// A short wait between two looks at something that cannot be waited for with a time limit: a thread
// that is to stop, another tracer that is to finish.
#pragma once

#include <chrono>

#include <poll.h>

namespace clew::inline_ {

inline void wait_briefly(std::chrono::microseconds time) {
  const timespec limit = {.tv_sec = 0, .tv_nsec = int64_t{time.count()} * 1000};
  (void)ppoll(nullptr, 0, &limit, nullptr);
}

}  // namespace clew::inline_
