// SPDX-License-Identifier: Apache-2.0
// Panes: the slots of time by which answers that go on are counted. A pane's number is
// floor((time - epoch) / width), of the wall clock, so that it is the same wherever panes have this
// epoch and this width; whose clock is set by steps reads its offset to the monotonic clock once,
// and goes by that one.
//
//     number          -1            0              1              2
//               |------------|------------|---------------|------------
//     begin     epoch - width      epoch     epoch + width   …            a begin is its own pane's
//
// Times and widths are nanoseconds. Numbers may be anybody's: a moment that does not fit into 64
// bits is the first or the last one that does.
#pragma once

#include <cstdint>

namespace clew::stream {

struct Panes {
  int64_t epoch_ns = 0;  // Of the time of day: number 0 begins there.
  int64_t width_ns = 1;  // At least 1.

  [[nodiscard]] int64_t number_of(int64_t time_ns) const;
  [[nodiscard]] int64_t begin(int64_t number) const;
  [[nodiscard]] int64_t end(int64_t number) const;

  bool operator==(const Panes&) const = default;
};

}  // namespace clew::stream
