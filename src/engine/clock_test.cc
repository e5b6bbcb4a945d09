// SPDX-License-Identifier: Apache-2.0
#include "engine/clock.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

namespace clew::engine {
namespace {

constexpr double kTicksPerNs = 2.0999417;

// As a machine's clocks are read: some error, to either side in turn.
class Machine {
 public:
  [[nodiscard]] static uint64_t ticks_at(int64_t ns) {
    return 123'456'789'012 +
           static_cast<uint64_t>(std::llround(static_cast<double>(ns) * kTicksPerNs));
  }
  ClockSample sample(int64_t ns) {
    error_ns_ = -error_ns_;
    return {.ticks = ticks_at(ns), .monotonic_ns = ns + error_ns_};
  }

 private:
  int64_t error_ns_ = 25;
};

int64_t distance(uint64_t a, uint64_t b) {
  return std::abs(static_cast<int64_t>(a - b));
}

// Rounds that are 50 ms apart, as on a machine where nobody gets a processor: half of what a thread
// needs from a call to its next probe is still to be told.
TEST(Counter, TellsWhatIsAHundredNanosecondsApart) {
  Machine machine;
  Counter counter(machine.sample(0));
  for (int64_t now = 300'000'000; now < 3'000'000'000; now += 50'000'000) {
    counter.note(machine.sample(now));
    for (int64_t at = now - 50'000'000; at <= now + 5'000'000; at += 1'000'000)
      EXPECT_LE(distance(counter.ticks_at(at), Machine::ticks_at(at)), 100 * kTicksPerNs) << at;
  }
}

// From a second behind the moment when Linux begins to steer its clock as fast as it does.
TEST(Counter, FollowsAClockThatIsSteered) {
  constexpr int64_t kBegin = 1'000'000'000;
  const auto steered = [](int64_t ns) { return ns <= kBegin ? ns : ns + (ns - kBegin) / 2000; };
  Machine machine;
  Counter counter(machine.sample(0));
  for (int64_t now = 10'000'000; now < 4'000'000'000; now += 10'000'000) {
    counter.note({.ticks = Machine::ticks_at(now), .monotonic_ns = steered(now) + 25});
    const int64_t at = now - 8'000'000;
    if (at < 2 * kBegin) continue;
    EXPECT_LE(distance(counter.ticks_at(steered(at)), Machine::ticks_at(at)), 100 * kTicksPerNs);
  }
}

}  // namespace
}  // namespace clew::engine
