// SPDX-License-Identifier: Apache-2.0
// Which panes of one incarnation of a node are merged: all up to a mark, and some of the 64 above
// it. So a partial that comes twice, however late, is merged once, and nothing grows.
#pragma once

#include <cstdint>

#include "cluster/message.h"

namespace clew::cluster {

class PaneSet {
 public:
  static constexpr Pane kNone = std::numeric_limits<Pane>::min();

  PaneSet() = default;
  PaneSet(Pane mark, uint64_t bits) : mark_(mark), bits_(bits) {}

  enum class Added : uint8_t { New, Known, TooFar };
  // TooFar: it does not fit above the mark, and has to come again, when that has moved.
  Added add(Pane pane);
  // Nothing up to this one is missing, as the node says itself.
  void close(Pane pane);
  [[nodiscard]] bool has(Pane pane) const;
  [[nodiscard]] Pane mark() const { return mark_; }
  [[nodiscard]] uint64_t bits() const { return bits_; }

 private:
  void settle();
  [[nodiscard]] bool is_near(Pane pane) const;

  Pane mark_ = kNone;
  uint64_t bits_ = 0;  // Bit i: mark_ + 1 + i.
};

}  // namespace clew::cluster
