// SPDX-License-Identifier: Apache-2.0
// Victim `spoilers`: calls functions while its forked children write at random into all memory of
// the tracer's that they share with it, each word again and again, until they are killed.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(spoiled);
VICTIM_COUNTER(spoiled_inner);

enum { kChildrenMax = 8, kPageBytes = 4096, kMappingsMax = 16, kPagesMax = 1 << 20 };

struct Mapping {
  uint64_t* begin;
  size_t pages;
};

static pid_t children[kChildrenMax];
static uint64_t child_count;
static unsigned char resident[kPagesMax];

VICTIM_FUNCTION uint64_t spoiled_inner(uint64_t value) {
  VICTIM_COUNT(spoiled_inner);
  return value * 31 + 7;
}

VICTIM_FUNCTION uint64_t spoiled(uint64_t value, const char* text) {
  VICTIM_COUNT(spoiled);
  return spoiled_inner(value) + strlen(text) + (value % 5 == 0 ? spoiled_inner(value + 1) : 0);
}

uint64_t victim_run(uint64_t rounds) {
  static const char* const kTexts[] = {"", "one", "a text of some length", "another one"};
  uint64_t digest = 0;
  for (uint64_t i = 0; i < rounds; ++i)
    digest = victim_mix(digest, spoiled(i % 1000, kTexts[i % 4]));
  return digest;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static size_t find_mappings(struct Mapping* mappings) {
  char line[512];
  size_t count = 0;
  FILE* const maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && count < kMappingsMax && fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char rights[5] = "";
    if (strstr(line, "clew-arena") == NULL) continue;
    if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) != 3 || strcmp(rights, "rw-s") != 0)
      continue;
    mappings[count].begin = (uint64_t*)begin;
    mappings[count++].pages = (end - begin) / kPageBytes;
  }
  if (maps != NULL) fclose(maps);
  return count;
}

// Words of all kinds: small numbers, bits, addresses of this program, anything.
static uint64_t garbage(uint64_t* state) {
  const uint64_t value = next_random(state);
  switch (value % 5) {
    case 0:
      return value >> 56;
    case 1:
      return (uint64_t)1 << (value >> 58);
    case 2:
      return (uint64_t)resident + (value >> 44);
    case 3:
      return ~(value >> 54);
    default:
      return value;
  }
}

// Only pages that are there: the memory has room for thousands of threads.
static void spoil(const struct Mapping* mapping, uint64_t* state) {
  const size_t pages = mapping->pages < kPagesMax ? mapping->pages : kPagesMax;
  if (mincore(mapping->begin, pages * kPageBytes, resident) != 0) return;
  for (size_t page = 0; page < pages; ++page) {
    if ((resident[page] & 1) == 0) continue;
    uint64_t* const words = mapping->begin + page * (kPageBytes / 8);
    const int is_dense = next_random(state) % 4 == 0;
    for (size_t i = 0; i < kPageBytes / 8; ++i) {
      if (is_dense || next_random(state) % 16 == 0) words[i] = garbage(state);
    }
  }
}

static void spoil_for_ever(uint64_t seed) {
  struct Mapping mappings[kMappingsMax];
  const size_t count = find_mappings(mappings);
  uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (1) {
    for (size_t i = 0; i < count; ++i)
      spoil(&mappings[i], &state);
  }
}

// So many more children.
static void spoilers(uint64_t count) {
  struct Mapping mappings[kMappingsMax];
  victim_print("mappings", find_mappings(mappings));
  for (uint64_t i = 0; i < count && child_count < kChildrenMax; ++i) {
    const pid_t child = fork();
    if (child == 0) spoil_for_ever(child_count + 1);
    VICTIM_CHECK(child > 0);
    children[child_count++] = child;
  }
}

// Some have ended by themselves: what they wrote to is gone when the tracer has detached.
static void end_spoilers(uint64_t unused) {
  (void)unused;
  uint64_t ended = 0;
  for (uint64_t i = 0; i < child_count; ++i) {
    kill(children[i], SIGKILL);
    ended += waitpid(children[i], NULL, 0) == children[i] ? 1 : 0;
  }
  victim_print("ended", ended);
  child_count = 0;
}

const struct VictimCommand victim_commands[] = {
    {"spoilers", spoilers}, {"end_spoilers", end_spoilers}, {0, 0}};
