// SPDX-License-Identifier: Apache-2.0
// Whoever takes what a session counts by panes of time (stream/pane.h), instead of an answer's
// rows: what a node of a cluster sends on, to be merged with what others counted in the same panes.
#pragma once

#include <cstdint>

#include "aggregate/table.h"
#include "base/error.h"
#include "collect/losses.h"
#include "stream/pane.h"

namespace clew::session {

struct PaneClock {
  stream::Panes panes;
  int64_t offset_ns = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC, as it was once: panes never jump.

  [[nodiscard]] int64_t pane_at(int64_t monotonic_ns) const {
    return panes.number_of(monotonic_ns + offset_ns);
  }
  // Of CLOCK_MONOTONIC.
  [[nodiscard]] int64_t end_of(int64_t pane) const { return panes.end(pane) - offset_ns; }
};

class PaneTaker {
 public:
  PaneTaker() = default;
  PaneTaker(const PaneTaker&) = delete;
  PaneTaker& operator=(const PaneTaker&) = delete;
  virtual ~PaneTaker() = default;

  // What was counted since the last pane was taken, a little behind the pane's end; the last time,
  // at the session's end, perhaps before it. Panes ascend; where the session was kept from its
  // turns for longer than one, some are left out, and what was counted in them is in the one
  // before. `so_far`: of the session.
  virtual Expected<void> take(int64_t pane, const aggregate::Table& table,
                              const collect::Losses& so_far) = 0;
};

}  // namespace clew::session
