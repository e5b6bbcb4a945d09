// SPDX-License-Identifier: Apache-2.0
// Takes the complete events out of one thread's ring (abi/region.h). Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "abi/region.h"
#include "collect/event_batch.h"

namespace clew::collect {

struct RingSource {
  std::byte* region;                        // First byte of the window.
  abi::RingLayout layout;                   // Checked: it lies inside the window.
  std::span<const EventWords> event_words;  // By shape.
  uint32_t process;
  uint32_t tid;
};

struct RingState {
  bool known = false;  // `tail` is set.
  uint64_t tail = 0;   // Trusted copy of ring_tail: the shared one may be written over.
  uint64_t damaged_bytes = 0;
};

void read_ring(const RingSource& source, RingState& state, EventBatch& batch);

// The same for the ring of a D session (abi/machine/process.h): each record, which says its own
// size. The bytes are private and valid during the call.
using TakeRecord = std::function<void(std::span<const uint8_t>)>;
void read_records(const RingSource& source, RingState& state, const TakeRecord& take);

}  // namespace clew::collect
