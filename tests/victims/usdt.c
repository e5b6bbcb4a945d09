// SPDX-License-Identifier: Apache-2.0
// Victim `usdt`: static probes with arguments of several sizes and forms, one name at two places
// with two texts, and a semaphore, which "listeners" prints. A probe counts as a call of its name.
#include <stdint.h>

#include "static_probe.h"
#include "victim.h"

VICTIM_COUNTER(told);
VICTIM_COUNTER(twice);

__attribute__((section(".probes"), used)) volatile unsigned short told_semaphore;

// arg0 = -i, arg1 = a text, arg2 = -i as an int in memory, arg3 = i as a byte, arg4 = 7.
VICTIM_FUNCTION uint64_t tell(long number, const char* text) {
  const long negative = -number;
  const int low = (int)negative;
  VICTIM_COUNT(told);
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_victim", "told__all", "told_semaphore",
                                       "-8@%0 8@%1 -4@%2 1@%b3 4@$7")
                   :
                   : "r"(negative), "r"(text), "m"(low), "q"(number));
  return (uint64_t)(negative + text[0]);
}

// Of the same name: 10 * i in a register of 4 bytes, and 10 * i + 1 on the stack.
VICTIM_FUNCTION uint64_t first_place(uint32_t number) {
  const uint32_t value = 10 * number;
  VICTIM_COUNT(twice);
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_victim", "twice", "0", "4@%k0") : : "r"(value));
  return value;
}

VICTIM_FUNCTION uint64_t second_place(uint64_t number) {
  const uint64_t value = 10 * number + 1;
  VICTIM_COUNT(twice);
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_victim", "twice", "0", "8@%0") : : "m"(value));
  return value;
}

static const char* const kTexts[] = {"alpha", "beta", "gamma"};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
    digest = victim_mix(digest, tell((long)i, kTexts[i % 3]));
    digest = victim_mix(digest, first_place((uint32_t)i));
    digest = victim_mix(digest, second_place(i));
  }
  return digest;
}

static void print_listeners(uint64_t unused) {
  (void)unused;
  victim_print("listeners", told_semaphore);
}

const struct VictimCommand victim_commands[] = {{"listeners", print_listeners}, {0, 0}};
