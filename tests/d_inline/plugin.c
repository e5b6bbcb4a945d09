// SPDX-License-Identifier: Apache-2.0
// A library that the victim loads when it is told to. Behind the first instruction is room for a
// jump.
#include "../victims/static_probe.h"

__attribute__((noinline)) long plug(long value) {
  __asm__ volatile("" : : : "memory");
  return value + (value >> 3);
}

// The static probe `inline_plugin:::plugged`, which is passed when somebody listens to it.
__attribute__((section(".probes"), used)) volatile unsigned short plugged_semaphore;

__attribute__((noinline)) long plugged(long value) {
  if (plugged_semaphore == 0) return value;
  __asm__ volatile(VICTIM_STATIC_PROBE("inline_plugin", "plugged", "plugged_semaphore", "-8@%0")
                   :
                   : "r"(value));
  return value;
}
