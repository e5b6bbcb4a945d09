// SPDX-License-Identifier: Apache-2.0
// Victim `typed`: functions with debug information whose arguments are worth a look inside.
#include <stdint.h>

#include "victim.h"

VICTIM_COUNTER(priced);
VICTIM_COUNTER(priced_high);

struct item {
  double price;
  float weight;
  struct item* next;
};

VICTIM_FUNCTION uint64_t priced(const struct item* item, int count) {
  VICTIM_COUNT(priced);
  if (item->next->price > 1.25) VICTIM_COUNT(priced_high);
  return (uint64_t)(item->price * 4) + (uint64_t)count;
}

const struct VictimCommand victim_commands[] = {{0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    struct item last = {(double)(round % 8) / 2, 2.5f, 0};
    const struct item first = {(double)round / 4, (float)round, &last};
    digest = victim_mix(digest, priced(&first, 3));
  }
  return digest;
}
