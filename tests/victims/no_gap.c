// SPDX-License-Identifier: Apache-2.0
// Victim `no_gap`: reserves every free page within 2 GiB of its own text, so that no trampoline can
// be placed in reach of a jump. Tracing it must be refused cleanly.
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "victim.h"

VICTIM_COUNTER(lonely);

enum { kGapsMax = 512 };

VICTIM_FUNCTION uint64_t lonely(uint64_t x) {
  VICTIM_COUNT(lonely);
  return x * 31 + 7;
}

// Maps [from, to) without access; it costs no memory.
static void reserve(uint64_t from, uint64_t to) {
  if (from >= to) return;
  void* got = mmap((void*)from, to - from, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  VICTIM_CHECK(got == (void*)from);
}

static uint64_t maximum(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}
static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Reads the map first and reserves afterwards: the buffer of the file is itself memory.
static void reserve_all(uint64_t unused) {
  (void)unused;
  const uint64_t reach = 0x81000000;  // 2 GiB and some pages.
  const uint64_t page = 4096;
  const uint64_t here = (uint64_t)&lonely & ~(page - 1);
  const uint64_t low = here > reach ? here - reach : page * 16;
  const uint64_t high = here + reach;
  static uint64_t gaps[kGapsMax][2];
  int count = 0;
  uint64_t previous_end = low;
  FILE* maps = fopen("/proc/self/maps", "re");
  char line[512];
  while (fgets(line, sizeof line, maps) && count < kGapsMax) {
    unsigned long long start = 0, end = 0;
    if (sscanf(line, "%llx-%llx", &start, &end) != 2) continue;
    if (start > previous_end && previous_end < high) {
      gaps[count][0] = maximum(previous_end, low);
      gaps[count++][1] = minimum(start, high);
    }
    previous_end = maximum(previous_end, end);
  }
  fclose(maps);
  for (int i = 0; i < count; ++i)
    reserve(gaps[i][0], gaps[i][1]);
}

const struct VictimCommand victim_commands[] = {{"reserve", reserve_all}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, lonely(round));
  return digest;
}
