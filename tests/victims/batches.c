// SPDX-License-Identifier: Apache-2.0
// Victim `batches`: after the command `begin N` it makes one batch of calls after the other, of N
// calls of `batch_call` each, which takes some milliseconds. A batch is called with its number, so
// whoever counts by that can be compared batch by batch, whenever it looked. `end` ends behind a
// whole batch, and prints when each began (CLOCK_REALTIME, ns).
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "victim.h"

VICTIM_COUNTER(batch_call);

#define BATCHES_MAX 1000000

static uint64_t began_ns[BATCHES_MAX];
static uint64_t batches;
static uint64_t calls_each;
static bool is_over;
static pthread_t maker;

VICTIM_FUNCTION uint64_t batch_call(uint64_t batch) {
  VICTIM_COUNT(batch_call);
  return victim_mix(batch, calls_each);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void make_batch(uint64_t batch) {
  const struct timespec pause = {.tv_sec = 0, .tv_nsec = 1000000};
  began_ns[batch] = now_ns();
  for (uint64_t call = 0; call < calls_each; ++call) {
    batch_call(batch);
    if (call % 8 == 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
  }
}

static void* make_batches(void* unused) {
  (void)unused;
  for (; !__atomic_load_n(&is_over, __ATOMIC_RELAXED) && batches < BATCHES_MAX; ++batches)
    make_batch(batches);
  return NULL;
}

static void begin(uint64_t calls) {
  calls_each = calls;
  if (pthread_create(&maker, NULL, make_batches, NULL) != 0) abort();
  victim_print("begun", 1);
}

static void end(uint64_t unused) {
  (void)unused;
  __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
  pthread_join(maker, NULL);
  for (uint64_t batch = 0; batch < batches; ++batch) {
    char name[24];
    snprintf(name, sizeof name, "%lu", (unsigned long)batch);
    victim_print(name, began_ns[batch]);
  }
}

const struct VictimCommand victim_commands[] = {{"begin", begin}, {"end", end}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, batch_call(round));
  return digest;
}
