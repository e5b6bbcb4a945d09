// SPDX-License-Identifier: Apache-2.0
// Records of several sources -> one order: the kernel's ring, and a ring for each thread of the
// processes whose probes run inline.
//
// What a firing records has the time at which it began, and is in its ring when it is over. A turn
// notes the time T, reads all rings, and passes on, by time, what is not younger than T. So what
// was over before another firing began comes before it: all of one thread, and whatever threads
// made wait for each other. Firings that overlapped in time may come in any order when one of them
// ended after T.
//
// The records that a speculation holds are in no order until it is committed; whoever reads takes
// them out first (see DtraceConsumer). So that none is missing then, the kernel's ring is read
// before and after the others: what led to a record in one of these is in it by the second time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "abi/machine/window.h"

namespace clew::engine {

class RecordMerge {
 public:
  using Take = std::function<void(std::span<const uint8_t>)>;

  // Begins with a MachineRecordHeader.
  void add(std::span<const uint8_t> record);
  // Passes on, in order, what began at `limit_ns` or before.
  void take(uint64_t limit_ns, const Take& take);
  [[nodiscard]] size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    uint64_t time_ns = 0;
    std::vector<uint8_t> bytes;
  };
  std::vector<Waiting> waiting_;
};

}  // namespace clew::engine
