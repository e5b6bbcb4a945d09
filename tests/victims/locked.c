// SPDX-License-Identifier: Apache-2.0
// Victim `locked`: has all its memory locked, also what is mapped later.
#include <stdint.h>
#include <sys/mman.h>

#include "victim.h"

VICTIM_COUNTER(locked_work);

__attribute__((constructor)) static void lock_memory(void) {
  VICTIM_CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
}

VICTIM_FUNCTION uint64_t locked_work(uint64_t x) {
  VICTIM_COUNT(locked_work);
  return victim_mix(x, 7);
}

const struct VictimCommand victim_commands[] = {{0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = locked_work(digest);
  return digest;
}
