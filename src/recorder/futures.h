// SPDX-License-Identifier: Apache-2.0
// Which records can come next, from each block of a function on, given its heads.
#pragma once

#include <cstdint>
#include <vector>

#include "recorder/flow.h"

namespace clew::recorder {

// Sets of more are taken for any record: a bit too many is never wrong.
inline constexpr size_t kNextMax = 32;

// A set of next records, or all of them.
struct Next {
  bool any = false;
  std::vector<uint32_t> records;  // Ascending; see Futures.

  void add(const Next& other);
  [[nodiscard]] bool surely_differs_from(const Next& other) const;
};

// A loop that is recorded once: from its head on, in the order in which they run. The last one
// leads back to the head, without a record; the others out of it or on.
using Cycle = std::vector<uint32_t>;

// Of one function. Borrows all of them.
class Futures {
 public:
  // Every cycle has a head in it.
  Futures(const Flow& flow, const std::vector<bool>& is_head, const std::vector<Cycle>& cycles);

  // Blocks with every block behind those that control comes from, but for ways to heads.
  [[nodiscard]] const std::vector<uint32_t>& order() const { return order_; }
  // Does the branch at its end need a bit?
  [[nodiscard]] bool needs_bit(uint32_t block) const { return needs_bit_[block]; }
  // A way of that block: it stays in a loop that is recorded once.
  [[nodiscard]] bool is_in_cycle(uint32_t block, const Way& way) const {
    return way.block != kNone && way.block == cycle_next_[block];
  }
  // Is a bit set on some way from the block's start to the next record?
  [[nodiscard]] bool decides(uint32_t block) const { return decides_[block]; }

 private:
  void sort_blocks();
  [[nodiscard]] Next next_of(const Way& way) const;
  [[nodiscard]] bool is_undecided(uint32_t block) const;
  void find(uint32_t block);
  void decide_exits(const Cycle& cycle);

  const Flow& flow_;
  const std::vector<bool>& is_head_;
  std::vector<uint32_t> order_;
  std::vector<Next> next_;
  std::vector<uint32_t> cycle_next_;  // By block: the next one of its cycle, or kNone.
  std::vector<bool> needs_bit_;
  std::vector<bool> decides_;
};

}  // namespace clew::recorder
