// SPDX-License-Identifier: Apache-2.0
// A library with a static probe that is passed when somebody listens to it.
#include <stdint.h>

#include "static_probe.h"

__attribute__((section(".probes"), used)) volatile unsigned short plugged_semaphore;

// Whether it was passed.
__attribute__((noinline)) uint64_t plugged(uint64_t number) {
  if (plugged_semaphore == 0) return 0;
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_plugin", "plugged", "plugged_semaphore", "8@%0")
                   :
                   : "r"(number));
  return 1;
}
