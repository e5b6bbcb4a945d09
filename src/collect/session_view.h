// SPDX-License-Identifier: Apache-2.0
// Where the shared memory of one session lies and how it is laid out: the tracer's own, trusted
// copy. Nothing here is read from shared memory, because the traced program can write over all of
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/arena.h"
#include "base/error.h"
#include "collect/event_batch.h"

namespace clew::collect {

struct SessionView {
  std::span<std::byte> header{};  // The abi::ArenaHeader page; borrowed, 8-aligned.
  std::span<std::byte> target{};  // The abi::TargetPage; borrowed, 8-aligned.
  std::span<std::byte> slots{};   // slot_count * slot_stride_bytes, borrowed, 8-aligned.
  uint64_t slot_stride_bytes = 0;
  uint32_t slot_count = 0;
  uint32_t session = 0;        // Index in ArenaHeader::sessions.
  uint32_t region_offset = 0;  // Of the region, from the first byte of a slot.
  uint32_t dense_words = 0;    // Words of dense cells of one generation, all groups together.
  abi::RegionLayout layout{};
  uint32_t fuel_offset = 0;               // In the region: hits not looked at, then
  uint32_t fuel_words = 0;                // so many counts of hits out of fuel. 0 = none of it.
  uint32_t duty_words = 0;                // In front of the counters of contexts (plan/in_place.h).
  std::vector<EventWords> event_words{};  // By shape. Sizes are checked.

  bool has_records =
      false;  // A D session: its ring has records (abi/machine/process.h), no events.

  // The memfd behind `slots`, borrowed; -1 = none. With it, pages that nobody has touched are not
  // read, so that reading does not allocate memory. The file must be sealed against shrinking
  // (F_SEAL_SHRINK), else the traced program could make a read fault.
  int memory_file = -1;
  uint64_t slots_file_offset = 0;

  // ForkPolicy::Follow: several processes claim slots (see Reader::free_dead_slots).
  bool follow_forks = false;
};

// Limit: every part lies inside the window, parts of a region do not overlap the frame, sizes are
// powers of two where the layout says so.
Expected<void> check(const SessionView& view);

}  // namespace clew::collect
