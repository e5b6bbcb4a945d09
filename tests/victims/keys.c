// SPDX-License-Identifier: Apache-2.0
// Victim `keys`: calls one function with many different arguments, at a pace or as fast as it can.
#include <sys/prctl.h>
#include <time.h>

#include "victim.h"

VICTIM_COUNTER(take_key);

enum { kKeysPerPause = 64 };

// Counting happens in the callers: the function must stay small.
VICTIM_FUNCTION uint64_t take_key(uint64_t key) {
  return key * 0x9E3779B97F4A7C15ULL ^ key >> 7;
}

// The pause is the pace of the test, not a wait for anybody.
static void pause_a_moment(void) {
  const struct timespec moment = {0, 1000 * 1000};
  nanosleep(&moment, 0);
}

static uint64_t take_keys(uint64_t first, uint64_t count, int paced) {
  uint64_t digest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    VICTIM_COUNT(take_key);
    digest = victim_mix(digest, take_key(first + i));
    if (paced && i % kKeysPerPause == kKeysPerPause - 1) pause_a_moment();
  }
  return digest;
}

// Keys from 0 on, each once; 64 in a millisecond at most.
static void paced(uint64_t count) {
  victim_print("result", take_keys(0, count, 1));
}

// The same without a pause.
static void fast(uint64_t count) {
  victim_print("result", take_keys(0, count, 0));
}

// So many more, without a pause.
static void next(uint64_t count) {
  static uint64_t first;
  victim_print("result", take_keys(first, count, 0));
  first += count;
}

// This key, once.
static void one(uint64_t key) {
  victim_print("result", take_keys(key, 1, 0));
}

// From here on, rdtsc is a signal.
static void forbid_time(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
}

const struct VictimCommand victim_commands[] = {{"paced", paced},
                                                {"fast", fast},
                                                {"next", next},
                                                {"one", one},
                                                {"forbid_time", forbid_time},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, take_keys(0, 100, 0));
  return digest;
}
