// SPDX-License-Identifier: Apache-2.0
// The waiting of a session, for both languages: until one of the driven wants a turn, or it is time
// for something else.
//
//   while (… && loop.wait(stop, until)) { loop.give_turns(); …; loop.keep_house(); }
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include "base/error.h"
#include "collect/losses.h"
#include "session/driven.h"

namespace clew::session {

class Loop {
 public:
  using Time = std::chrono::steady_clock;

  // All are borrowed.
  explicit Loop(std::vector<Driven*> driven) : driven_(std::move(driven)) {}

  // False when the session is to stop: `stop_descriptor` is readable.
  [[nodiscard]] bool wait(int stop_descriptor, Time::time_point until = Time::time_point::max());
  Expected<void> give_turns();
  std::vector<collect::DisarmedProbe> disarm_spinning();
  // True when it was time for it.
  bool keep_house();

 private:
  std::vector<Driven*> driven_;
  Time::time_point house_ = Time::now();
};

}  // namespace clew::session
