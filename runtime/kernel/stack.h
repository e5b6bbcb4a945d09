// SPDX-License-Identifier: Apache-2.0
// Takes the kernel's stack into the window's scratch room and finds where the probe's own frames
// end.
#pragma once

#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

inline constexpr uint64_t kFramesMax = 512;
inline constexpr uint64_t kOwnFramesMax = 32;  // Of BPF and the probe's machinery, on top.
inline constexpr uint64_t kUserFlag = 1 << 8;
inline constexpr uint64_t kSkippedTurns = 16;  // For a table of 2^16 functions.

// Frames [first, first + count) of the scratch room.
struct Frames {
  uint64_t first;
  uint64_t count;
};

[[gnu::always_inline]] inline uint64_t frame_at(MachineWindow* w, uint64_t index) {
  return *reinterpret_cast<const uint64_t*>(w->scratch + masked(index * 8, 0x1FF8));
}

// Whether the address is in one of the functions by which the kernel calls programs; the table is
// sorted, (begin, end) by (begin, end). Looks for the last one that begins at it or below, in steps
// that become half as long each turn.
[[gnu::always_inline]] inline bool is_skipped(MachineWindow* w, uint64_t address) {
  const uint64_t count = number(d_n_skipped);
  uint64_t place = zero(w);
  uint64_t step = uint64_t{1} << (kSkippedTurns - 1);
  for (uint64_t turn = zero(w); turn < kSkippedTurns && go_on(); ++turn) {
    const uint64_t next = place + step;
    const bool is_below = next < count && d_skipped[next].begin <= address;
    place = forgotten(w, is_below ? next : place);
    step = forgotten(w, step / 2);
  }
  if (place >= count) return false;
  return address >= d_skipped[place].begin && address < d_skipped[place].end;
}

#if defined(CLEW_COUNTED_LOOPS)
// A loop in another one has to be looked at by itself there; elsewhere it must not be.
extern "C" [[gnu::noinline]] uint64_t d_is_skipped(MachineWindow* w, uint64_t address) {
  return is_skipped(w, address) ? 1 : 0;
}
#else
[[gnu::always_inline]] inline uint64_t d_is_skipped(MachineWindow* w, uint64_t address) {
  return is_skipped(w, address) ? 1 : 0;
}
#endif

// The first frame behind those of the functions that called the program. It is kept in the window,
// where the verifier does not tell one round's from another's.
[[gnu::always_inline]] inline uint64_t first_frame(MachineWindow* w, uint64_t count) {
  volatile uint64_t& first = w->header.second_result;
  first = 0;
  for (uint64_t i = zero(w); i < kOwnFramesMax && i < count && go_on(); ++i) {
    if (d_is_skipped(w, frame_at(w, i)) != 0) first = i + 1;
  }
  return first;
}

// What a clock's main program took.
[[gnu::always_inline]] inline Frames clock_frames(MachineWindow* w, uint64_t limit) {
  const uint64_t count = w->header.stack_bytes / 8;
  const uint64_t taken = forgotten(w, count < limit ? count : limit);
  copy_kernel(w->scratch, 8 * taken, w->clock_stack);
  return {0, taken};
}

[[gnu::always_inline]] inline Frames capture(MachineWindow* w, uint64_t wanted) {
  const uint64_t limit = wanted < kFramesMax ? wanted : kFramesMax;
  if (w->header.has_stack != 0) return clock_frames(w, limit);
  const uint64_t size = masked((limit + kOwnFramesMax) * 8, 0x1FF8);
  const int64_t bytes = helper<141>(current_task(), w->scratch, size, uint64_t{0});
  if (bytes <= 0) return {0, 0};
  const uint64_t count = static_cast<uint64_t>(bytes) / 8;
  const uint64_t first = first_frame(w, count);
  const uint64_t left = count - first;
  return {first, left < limit ? left : limit};
}

}  // namespace clew::runtime::kernel
