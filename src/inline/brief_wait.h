// SPDX-License-Identifier: Apache-2.0
// A short wait between two looks at something that cannot be waited for with a time limit: a thread
// that is to stop, another tracer that is to finish.
#pragma once

#include <algorithm>
#include <chrono>

#include <poll.h>

namespace clew::inline_ {

inline void wait_briefly(std::chrono::microseconds time) {
  const timespec limit = {.tv_sec = 0, .tv_nsec = int64_t{time.count()} * 1000};
  (void)ppoll(nullptr, 0, &limit, nullptr);
}

// How long something is waited for. Counts the time between two looks as kLookMax at most: while we
// got no processor, what we wait for may have had none either.
class Patience {
 public:
  explicit Patience(std::chrono::nanoseconds time) : left_(time) {}

  // Looks once.
  bool is_over() {
    const Clock::time_point now = Clock::now();
    left_ -= std::min<std::chrono::nanoseconds>(now - last_, kLookMax);
    last_ = now;
    return left_.count() < 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLookMax{20};

  std::chrono::nanoseconds left_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace clew::inline_
