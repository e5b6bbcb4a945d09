// SPDX-License-Identifier: Apache-2.0
// Victim `busy`: a function that is called all the time, and one that is called once in 20,000
// times.
//
//     work   a thread does rounds from now on
//     rest   it ends: prints how many rounds it did, and the result that `run` has for so many
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "victim.h"

VICTIM_COUNTER(hot);
VICTIM_COUNTER(rare);

enum { kHotInRound = 20000 };

VICTIM_FUNCTION uint64_t hot(uint64_t x) {
  VICTIM_COUNT(hot);
  return victim_mix(x, 5);
}

VICTIM_FUNCTION uint64_t rare(uint64_t x) {
  VICTIM_COUNT(rare);
  return victim_mix(x, 7);
}

static uint64_t round_of(uint64_t digest) {
  for (int i = 0; i < kHotInRound; ++i)
    digest = hot(digest);
  return rare(digest);
}

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = round_of(digest);
  return digest;
}

static pthread_t worker;
static int is_over;
static uint64_t rounds_done, result_of_work;

static void* work_on(void* unused) {
  (void)unused;
  uint64_t digest = 0;
  for (rounds_done = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); ++rounds_done)
    digest = round_of(digest);
  result_of_work = digest;
  return NULL;
}

static void work(uint64_t unused) {
  (void)unused;
  __atomic_store_n(&is_over, 0, __ATOMIC_RELAXED);
  if (pthread_create(&worker, NULL, work_on, NULL) != 0) abort();
}

static void rest(uint64_t unused) {
  (void)unused;
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  VICTIM_CHECK(pthread_join(worker, NULL) == 0);
  victim_print("rounds", rounds_done);
  victim_print("result_of_work", result_of_work);
}

const struct VictimCommand victim_commands[] = {{"work", work}, {"rest", rest}, {0}};
