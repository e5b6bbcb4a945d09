// SPDX-License-Identifier: Apache-2.0
// How accessors read memory of the program that may not be there: by loads that cannot fault
// (runtime/load.h), or else by process_vm_readv(2) on itself. Both go by iovecs that are the
// thread's own (abi/arena.h, Reading).
#pragma once

#include "runtime/load.h"
#include "runtime/state.h"

namespace clew::runtime {

inline constexpr uint64_t kReadSizeMax = 4096;

inline uint32_t own_pid() {
  abi::PrivatePage& page = private_page();
  if (page.pid == 0) page.pid = static_cast<uint32_t>(call({kSysGetpid}));
  return page.pid;
}

// Of this thread's slot.
inline abi::Reading& own_reading() {
  const uint32_t index = gs_half(clew_low_address + offsetof(abi::SlotControl, index));
  return readings()[index % abi::kSlotsMax];
}

// In the order of the program: what a handler sees, or a child that it forks, has a meaning.
inline void set(uint64_t& word, uint64_t value) {
  *const_cast<volatile uint64_t*>(&word) = value;
}
inline uint64_t get(const uint64_t& word) {
  return *const_cast<const volatile uint64_t*>(&word);
}

// Where the destination is, and how much of it there is to write; the rest begins there, too. The
// end comes first: in a child that is forked in between, what was stored before is zero
// (MADV_WIPEONFORK), and there is nothing to write.
inline abi::Reading& begin_reading(uint32_t session, uint64_t to, uint64_t size, uint64_t from) {
  abi::Reading& reading = own_reading();
  const uint64_t begin = address_of(Region(session_entry(session)).at(to));
  set(reading.end, begin + (size <= kReadSizeMax ? size : kReadSizeMax));
  set(reading.begin, begin);
  set(reading.to, begin);
  set(reading.from, from);
  return reading;
}

using Unaligned [[gnu::aligned(1), gnu::may_alias]] = uint64_t;

// Some bytes of one word of the program, the first in the lowest byte, and where they go.
struct Loaded {
  uint64_t bytes;
  uint64_t to;
  uint64_t count;  // 0: there is no room, or nothing can be read.
};

// From `from` on, at most as many as there is room for when the last `spared` bytes of it are left.
// A probe on another fiber may use the Reading meanwhile, so each step asks it anew, once.
[[gnu::always_inline]] inline Loaded load_some(abi::Reading& reading, uint64_t place,
                                               uint64_t spared = 0) {
  Loaded loaded = {.bytes = 0, .to = get(reading.to), .count = 0};
  const uint64_t end = get(reading.end);
  const uint64_t from = get(reading.from);
  const uint64_t skipped = from % kWordBytes;
  if (loaded.to + spared >= end || !load_word(place, from - skipped, loaded.bytes)) return loaded;
  loaded.bytes >>= 8 * skipped;
  const uint64_t room = end - spared - loaded.to;
  const uint64_t found = kWordBytes - skipped;
  loaded.count = found < room ? found : room;
  return loaded;
}

// In a child that is forked in between, the Reading is zero, and no step comes after this one.
[[gnu::always_inline]] inline void store_some(abi::Reading& reading, const Loaded& loaded) {
  if (loaded.count == kWordBytes) {
    *reinterpret_cast<Unaligned*>(loaded.to) = loaded.bytes;
  } else {
    for (uint64_t i = 0; i < loaded.count; ++i) {
      *reinterpret_cast<volatile uint8_t*>(loaded.to + i) =
          static_cast<uint8_t>(loaded.bytes >> 8 * i);
    }
  }
  set(reading.to, loaded.to + loaded.count);
  set(reading.from, get(reading.from) + loaded.count);
}

// Copies the next `size` bytes by the kernel, so that a bad address is an error number. Says how
// many could be read.
inline uint64_t copy_next(abi::Reading& reading, uint64_t size) {
  if (header().system_calls_allowed == 0) return 0;
  set(reading.to_size, size);
  set(reading.from_size, size);
  // A probe on another fiber may have used the Reading meanwhile.
  if (size > get(reading.end) - get(reading.to)) return 0;
  const int64_t copied =
      call({kSysProcessVmReadv,
            {own_pid(), address_of(&reading.to), 1, address_of(&reading.from), 1, 0}});
  return copied < 0 ? 0 : static_cast<uint64_t>(copied);
}

}  // namespace clew::runtime
