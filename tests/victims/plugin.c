// SPDX-License-Identifier: Apache-2.0
// A library that is loaded and unloaded again and again. Built twice, with another PLUGIN_FACTOR,
// so that the two put different code at the same addresses.
#include <stdint.h>

static uint64_t constructed;

__attribute__((constructor, noinline)) void plugin_constructor(void) {
  constructed = 77;
}

__attribute__((noinline)) uint64_t plugin_work(uint64_t x) {
  __asm__ volatile("" : "+r"(x));
#if PLUGIN_FACTOR == 3
  return constructed == 77 ? x * 3 + 1 : 0;
#else
  const uint64_t y = x ^ 0x1234;
  return constructed == 77 ? (y << 4) - y + 2 : 0;
#endif
}

// Is left by a jump.
__attribute__((noinline)) uint64_t plugin_jump(uint64_t x) {
  return plugin_work(x + 1);
}
