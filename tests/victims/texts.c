// SPDX-License-Identifier: Apache-2.0
// Victim `texts`: gives a function texts of all lengths.
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(take_text);

enum { kLongest = 5000, kStep = 37 };

static char text[kLongest + 1];

VICTIM_FUNCTION uint64_t take_text(const char* begin, uint64_t size) {
  // In front of the counter, a write, behind which no probe may look at memory.
  __asm__ volatile("nop" ::: "memory");
  VICTIM_COUNT(take_text);
  return (uint64_t)(unsigned char)begin[size / 2] + size;
}

// The last `size` of the letters.
static const char* text_of(uint64_t size) {
  for (size_t i = 0; i < kLongest; ++i)
    text[i] = (char)('a' + i * i % 26);
  text[kLongest] = 0;
  return text + kLongest - size;
}

static void one(uint64_t size) {
  victim_print("result", take_text(text_of(size), size));
}

// A file that is not there: no system takes a path of that length.
static void opens(uint64_t size) {
  VICTIM_CHECK(open(text_of(size), O_RDONLY) < 0);
  victim_print("opens", 1);
}

const struct VictimCommand victim_commands[] = {{"one", one}, {"opens", opens}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t size = round * kStep % kLongest;
    digest = victim_mix(digest, take_text(text_of(size), size));
  }
  return digest;
}
