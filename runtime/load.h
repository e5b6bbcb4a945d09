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
  const bool is_in_stack =
      from < arena.stack_high && (from >= arena.stack_low || size > arena.stack_low - from);
  if (!is_in_stack) return arena.load_address;
  const uint64_t own = stack_pointer();
  return own >= arena.stack_low && own <= from ? arena.load_address : 0;
}

// False: nothing can be read there. `address` is aligned. A signal handler of the program may
// unwind from inside, by call frame information that the vDSO has for what was there: the caller's
// frame is where rbp points (arch/x86/entry/vdso/vsgx.S). So rbp points to zeros meanwhile, which
// end every walk.
[[gnu::always_inline]] inline bool load_word(uint64_t place, uint64_t address, uint64_t& word) {
  bool failed = false;
  uint64_t zeros = address_of(&header().no_frame[1]);
  word = place;
  asm volatile(
      "mov %%rbp, %%rcx\n"
      "mov %%rdx, %%rbp\n"
      "call *%%rax\n"
      "mov %%rcx, %%rbp\n"
      : "+a"(word), "=@ccc"(failed), "+D"(address), "+d"(zeros)
      :
      : "rcx", "rsi", "memory");
  return !failed;
}

// How many of the word's bytes, from the lowest on, are in front of a zero; 8 when none is zero.
[[gnu::always_inline]] inline uint64_t bytes_to_zero(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
  const uint64_t zeros = (word - kOnes) & ~word & kOnes << 7;
  return zeros == 0 ? kWordBytes : static_cast<uint64_t>(__builtin_ctzll(zeros)) / 8;
}

}  // namespace clew::runtime
