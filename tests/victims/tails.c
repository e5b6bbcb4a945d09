// SPDX-License-Identifier: Apache-2.0
// Victim `tails`: two functions that call one another in tail position, as deep as asked; only
// jumps keep the stack from growing.
#include <stdint.h>
#include <sys/resource.h>

#include "victim.h"

VICTIM_COUNTER(tail_even);
VICTIM_COUNTER(tail_odd);

VICTIM_FUNCTION uint64_t tail_odd(uint64_t n, uint64_t sum);

VICTIM_FUNCTION uint64_t tail_even(uint64_t n, uint64_t sum) {
  ++victim_counter_tail_even.value;
  if (n == 0) return sum;
  return tail_odd(n - 1, sum + n);
}

VICTIM_FUNCTION uint64_t tail_odd(uint64_t n, uint64_t sum) {
  ++victim_counter_tail_odd.value;
  if (n == 0) return sum;
  return tail_even(n - 1, sum + 3 * n);
}

const struct VictimCommand victim_commands[] = {{0}};

// One chain of `rounds` calls; twice, so that both functions end one.
uint64_t victim_run(uint64_t rounds) {
  const uint64_t even = tail_even(rounds, 0);
  const uint64_t odd = tail_odd(rounds, 0);
  VICTIM_CHECK(even + odd == 4 * (rounds * (rounds + 1) / 2));
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  VICTIM_CHECK(usage.ru_maxrss < 64 * 1024);  // KiB: nothing grew with the depth.
  return victim_mix(even, odd);
}
