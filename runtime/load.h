// SPDX-License-Identifier: Apache-2.0
// How the process's memory is read without the kernel: by the load that the tracer has put into the
// process's vDSO (src/inline/vdso_load.h), where that is possible. It gives a word or "no",
// whatever the address is, whatever other threads do to the memory meanwhile; at an aligned address
// it never crosses a page.
//
// One thing a load does that the kernel's way does not: below the stack of the first thread it
// makes that stack grow. There only what is above the thread's own stack pointer is loaded.
#pragma once

#include "runtime/state.h"

namespace clew::runtime {

inline constexpr uint64_t kWordBytes = 8;

// The place of the load for memory at [from, from + size); 0: the kernel must read it.
[[gnu::always_inline]] inline uint64_t load_for(uint64_t from, uint64_t size) {
  const abi::ArenaHeader& arena = header();
  if (from + size <= arena.stack_low || from >= arena.stack_high) return arena.load_address;
  const uint64_t own = stack_pointer();
  return own >= arena.stack_low && own <= from ? arena.load_address : 0;
}

// False: nothing can be read there. `address` is aligned.
[[gnu::always_inline]] inline bool load_word(uint64_t place, uint64_t address, uint64_t& word) {
  bool failed = false;
  asm volatile("call *%[place]"
               : "=a"(word), "=@ccc"(failed), "+D"(address)
               : [place] "r"(place)
               : "rsi", "rdx", "memory");
  return !failed;
}

// How many of the word's bytes, from the lowest on, are in front of a zero; 8 when none is zero.
[[gnu::always_inline]] inline uint64_t bytes_to_zero(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
  const uint64_t zeros = (word - kOnes) & ~word & kOnes << 7;
  return zeros == 0 ? kWordBytes : static_cast<uint64_t>(__builtin_ctzll(zeros)) / 8;
}

}  // namespace clew::runtime
