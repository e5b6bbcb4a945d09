// SPDX-License-Identifier: Apache-2.0
// What D code that is compiled for the kernel's verifier and for processes alike needs: loops that
// the verifier can bound, and atomic words.
#pragma once

#include <cstdint>

namespace clew::abi {

// In the condition of each loop of the D accessors. The kernel's verifier proves such a loop by two
// or three rounds instead of all (may_goto, Linux 6.9); the loop's counter must begin with a value
// that the verifier does not know. Elsewhere always true; so too for older kernels
// (CLEW_COUNTED_LOOPS), whose verifier walks through every round: there the counter begins with a
// value that it knows, and the rounds must be few.
//
//     %0 = 0 ; may_goto +1 ; %0 = 1      (may_goto jumps when 2^23 rounds are over)
[[gnu::always_inline]] constexpr bool go_on() {
#if defined(__bpf__) && !defined(CLEW_COUNTED_LOOPS)
  if (__builtin_is_constant_evaluated()) return true;
  uint64_t more = 0;
  asm volatile("%0 = 0\n .byte 0xe5, 0, 1, 0, 0, 0, 0, 0\n %0 = 1" : "=r"(more));
  return more != 0;
#else
  return true;
#endif
}

// The same for a loop whose counter no verifier knows: where it walks through the rounds, `round`
// counts them, from a value that it knows, up to `limit`.
[[gnu::always_inline]] constexpr bool go_on([[maybe_unused]] uint64_t& round,
                                            [[maybe_unused]] uint64_t limit) {
#if defined(CLEW_COUNTED_LOOPS)
  return round++ < limit;
#else
  return go_on();
#endif
}

[[gnu::always_inline]] inline uint64_t load_word(const uint64_t& word) {
#if defined(__bpf__)
  return *const_cast<const volatile uint64_t*>(&word);
#else
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
#endif
}

[[gnu::always_inline]] inline void store_word(uint64_t& word, uint64_t value) {
#if defined(__bpf__)
  asm volatile("" ::: "memory");
  *const_cast<volatile uint64_t*>(&word) = value;
  asm volatile("" ::: "memory");
#else
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
#endif
}

// True when `word` was `expected` and is now `desired`.
[[gnu::always_inline]] inline bool swap_word(uint64_t& word, uint64_t expected, uint64_t desired) {
  return __sync_val_compare_and_swap(&word, expected, desired) == expected;
}

// The value before.
[[gnu::always_inline]] inline uint64_t add_word(uint64_t& word, uint64_t value) {
  return __sync_fetch_and_add(&word, value);
}

}  // namespace clew::abi
