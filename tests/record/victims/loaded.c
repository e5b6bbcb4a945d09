// SPDX-License-Identifier: Apache-2.0
// What loads.c loads. Its constructor runs before dlopen returns.
#include <stdio.h>

#define KEPT __attribute__((noinline, noclone))

static unsigned begun;
static int* volatile nowhere;

KEPT static unsigned step(unsigned value) {
#ifdef UNLIKE
  if (value % 7 == 3) return value + 5;
#endif
  return value & 1 ? value * 3 + 1 : value >> 1;
}

__attribute__((constructor)) static void begin(void) {
  for (unsigned i = 0; i < 10; ++i)
    begun += step(i);
}

unsigned loaded_calls(unsigned turns) {
  unsigned value = begun;
  for (unsigned i = 0; i < turns; ++i)
    value += step(value + i);
  return value;
}

void loaded_faults(int depth) {
  if (depth > 0) {
    loaded_faults(depth - 1);
    ++begun;
    return;
  }
  *(volatile int*)nowhere = 1;  // LAST: loaded
}
