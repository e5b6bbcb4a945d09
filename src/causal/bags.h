// SPDX-License-Identifier: Apache-2.0
// The bags of a request: their heads by name, ascending, and behind each other the bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "causal/bag.h"

namespace clew::causal {

inline constexpr size_t kBagsMax = 64;
inline constexpr size_t kBodiesBytesMax = 4096;

class Bags {
 public:
  // Where a bag is, or would be.
  struct Place {
    size_t index = 0;
    size_t offset = 0;  // Of its body.
    bool is_there = false;
  };

  [[nodiscard]] size_t count() const { return heads_.size(); }
  // Of all bodies.
  [[nodiscard]] size_t bytes() const { return bodies_.size(); }
  [[nodiscard]] const Bag& bag(const Place& place) const { return heads_[place.index].bag; }
  [[nodiscard]] std::span<const std::byte> body(const Place& place) const {
    return bodies_.values().subspan(place.offset, heads_[place.index].size_bytes);
  }

  [[nodiscard]] Place find(const BagName& name) const;
  [[nodiscard]] Place first() const { return {.is_there = count() > 0}; }
  [[nodiscard]] Place next(const Place& place) const;

  // Puts a bag where it belongs, in the place of the one that is there. There is room for as much
  // as two requests have, each within its limits.
  void set(const Place& place, const Bag& bag, std::span<const std::byte> body);
  // Behind all others.
  void append(const Bag& bag, std::span<const std::byte> body);
  void remove(const Place& place);

 private:
  struct Head {
    Bag bag;
    uint16_t size_bytes;
  };

  // Two meet when branches join, before what is too much is taken away.
  FixedList<Head, 2 * kBagsMax> heads_;
  FixedList<std::byte, 2 * kBodiesBytesMax> bodies_;
};

}  // namespace clew::causal
