// SPDX-License-Identifier: Apache-2.0
// The messages with rows that whoever asked has not said to have. A bus may lose them; so they are
// numbered, and sent again.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cluster/bus.h"
#include "cluster/clock.h"

namespace clew::cluster {

class RowQueue {
 public:
  static constexpr size_t kBytesMax = size_t{64} << 20;
  static constexpr int64_t kAgainAfter = 2 * kSecond;

  // The number of the message that is added next; numbers begin at 1.
  [[nodiscard]] uint64_t next() const { return last_ + 1; }
  [[nodiscard]] uint64_t last() const { return last_; }
  // The first that is kept, or would be.
  [[nodiscard]] uint64_t first() const { return sent_.empty() ? next() : sent_.front().number; }
  void add(Bytes message, int64_t now_ns);
  // All up to this one have come.
  void forget(uint64_t number);
  // Those that were sent some time ago, oldest first, as sent now.
  std::vector<Bytes> take_unheard(int64_t now_ns);

 private:
  struct Sent {
    uint64_t number;
    int64_t time_ns;
    Bytes message;
  };
  std::deque<Sent> sent_;
  size_t bytes_ = 0;
  uint64_t last_ = 0;
};

}  // namespace clew::cluster
