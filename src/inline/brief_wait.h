// SPDX-License-Identifier: Apache-2.0
// A short wait between two looks at something that cannot be waited for with a time limit: a thread
// that is to stop, another tracer that is to finish.
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>

#include <poll.h>

namespace clew::inline_ {

inline void wait_briefly(std::chrono::microseconds time) {
  const timespec limit = {.tv_sec = 0, .tv_nsec = int64_t{time.count()} * 1000};
  (void)ppoll(nullptr, 0, &limit, nullptr);
}

// Waits for threads that we trace to stop: each stop sends us a SIGCHLD (ptrace(2)), which lies
// there when it is blocked. Who looks again and again instead, and yields in between, stands behind
// every program that computes (EEVDF moves the deadline of who yields), and for a system call of a
// thread we wait twice. Make one, look, then wait: nothing that comes after the look is missed.
// Where another thread of ours takes the signal, or nobody gets it (SIG_IGN), the time limit does.
class StopNews {
 public:
  StopNews() {
    (void)sigemptyset(&signals_);
    (void)sigaddset(&signals_, SIGCHLD);
    (void)pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~StopNews() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopNews(const StopNews&) = delete;
  StopNews& operator=(const StopNews&) = delete;

  void wait() const {
    const timespec limit = {.tv_sec = 0, .tv_nsec = kLookAgainNs};
    (void)sigtimedwait(&signals_, nullptr, &limit);
  }

 private:
  static constexpr int64_t kLookAgainNs = 500'000;

  sigset_t signals_{};
  sigset_t before_{};
};

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
