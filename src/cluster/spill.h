// SPDX-License-Identifier: Apache-2.0
// What a node has counted for one query and nobody has said is safe: its partials in the order of
// their panes, until they are marked. They go to the log in this order, each once more until the
// bus says that it is there. When they are too many, the oldest are dropped, and named.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cluster/message.h"

namespace clew::cluster {

class Spill {
 public:
  explicit Spill(size_t bytes_max) : bytes_max_(bytes_max) {}

  struct Kept {
    Pane pane = 0;
    Bytes table;
    bool is_sent = false;
  };

  // Panes ascend.
  void add(Pane pane, Bytes table);
  // The first one that is not sent, or null.
  [[nodiscard]] Kept* next();
  // All up to this one are safe.
  void forget(Pane mark);
  // These are wanted once more.
  void send_again(const std::vector<PaneRange>& panes);
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] bool empty() const { return kept_.empty(); }
  // Dropped ones, which nobody has: ranges ascend.
  [[nodiscard]] const std::vector<PaneRange>& lost() const { return lost_; }

 private:
  void drop_first();

  size_t bytes_max_;
  size_t bytes_ = 0;
  std::deque<Kept> kept_;
  std::vector<PaneRange> lost_;
};

}  // namespace clew::cluster
