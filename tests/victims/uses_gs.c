// SPDX-License-Identifier: Apache-2.0
// Victim `uses_gs`: a program that has its own use for the gs segment, as some language engines do.
#include <asm/prctl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(read_gs);

static uint64_t block[8] = {0, 42};

VICTIM_FUNCTION uint64_t read_gs(uint64_t x) {
  VICTIM_COUNT(read_gs);
  uint64_t word = 0;
  __asm__ volatile("mov %%gs:8, %0" : "=r"(word));
  return word + x;
}

static void use_gs(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, block) == 0);
}

const struct VictimCommand victim_commands[] = {{"use_gs", use_gs}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t value = read_gs(round);
    VICTIM_CHECK(value == 42 + round);
    digest = victim_mix(digest, value);
  }
  return digest;
}
