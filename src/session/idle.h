// SPDX-License-Identifier: Apache-2.0
// Whether a session is of use to anybody: it is idle when nothing was answered for a time, and
// unread when nobody took what it answered. Time is passed in.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace clew::session {

// Who asks for it.
struct IdleLimit {
  std::chrono::nanoseconds time;
  // No reader has taken anything for that time; or none.
  std::function<bool()> is_unread;
};

class Idle {
 public:
  using Time = std::chrono::steady_clock;

  Idle(IdleLimit limit, Time::time_point now)
      : limit_(std::move(limit)), busy_(now), looked_(now) {}

  // Something was answered.
  void note(Time::time_point now) { busy_ = now; }
  // It is time to look at what costs something to be looked at: a quarter of the limit has passed.
  [[nodiscard]] bool wants_look(Time::time_point now);
  // Nothing was noted for the limit: the last moment for a look.
  [[nodiscard]] bool is_quiet(Time::time_point now) const { return now - busy_ >= limit_.time; }
  // Why the session is of no use, one sentence; none while it is.
  [[nodiscard]] std::optional<std::string> why_over(Time::time_point now) const;

 private:
  IdleLimit limit_;
  Time::time_point busy_;
  Time::time_point looked_;
};

}  // namespace clew::session
