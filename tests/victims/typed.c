// SPDX-License-Identifier: Apache-2.0
// Victim `typed`: functions with debug information whose arguments are worth a look inside.
#include <stdint.h>

#include "victim.h"

VICTIM_COUNTER(priced);
VICTIM_COUNTER(priced_high);
VICTIM_COUNTER(scaled);
VICTIM_COUNTER(scaled_high);
VICTIM_COUNTER(halved);

struct item {
  double price;
  float weight;
  struct item* next;
};

VICTIM_FUNCTION uint64_t priced(const struct item* item, int count) {
  // In front of the counter, a write, behind which no probe may look at memory.
  __asm__ volatile("nop" ::: "memory");
  VICTIM_COUNT(priced);
  if (item->next->price > 1.25) VICTIM_COUNT(priced_high);
  return (uint64_t)(item->price * 4) + (uint64_t)count;
}

// Real numbers by value: in xmm0 and xmm1, and the result in xmm0.
VICTIM_FUNCTION double scaled(double price, int count, float factor) {
  VICTIM_COUNT(scaled);
  const double result = price * (double)factor + (double)count;
  if (result > 100.5) VICTIM_COUNT(scaled_high);
  return result;
}

VICTIM_FUNCTION float halved(float value) {
  VICTIM_COUNT(halved);
  return value / 2;
}

VICTIM_FUNCTION int odd(double value) {
  return value < 0 ? 1 : 0;
}

const struct VictimCommand victim_commands[] = {{0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = (uint64_t)(odd(0.0 / 0.0) + odd(-1.5) + odd(1.0 / 0.0));
  for (uint64_t round = 0; round < rounds; ++round) {
    struct item last = {(double)(round % 8) / 2, 2.5f, 0};
    const struct item first = {(double)round / 4, (float)round, &last};
    digest = victim_mix(digest, priced(&first, 3));
    digest = victim_mix(digest, (uint64_t)scaled(first.price, (int)round, 0.5f));
    digest = victim_mix(digest, (uint64_t)halved(first.weight));
  }
  return digest;
}
