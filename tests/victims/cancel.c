// SPDX-License-Identifier: Apache-2.0
// Victim `cancel`: threads that end inside three traced frames with clean-up handlers, by deferred
// and by asynchronous cancellation and by pthread_exit.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(outer_frame);
VICTIM_COUNTER(middle_frame);
VICTIM_COUNTER(inner_frame);
VICTIM_COUNTER(clean_up);

enum Ending { kDeferred, kAsynchronous, kExit, kReturn, kEndings };

struct Job {
  enum Ending ending;
  int reached;
  uint64_t cleaned;
};

static int never_pipe[2];  // Nothing is ever written to it.

VICTIM_FUNCTION static void clean_up(void* job) {
  VICTIM_COUNT(clean_up);
  ++((struct Job*)job)->cleaned;
}

VICTIM_FUNCTION uint64_t inner_frame(struct Job* job) {
  VICTIM_COUNT(inner_frame);
  uint64_t turns = 0;
  pthread_cleanup_push(clean_up, job);
  if (job->ending == kAsynchronous) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  __atomic_store_n(&job->reached, 1, __ATOMIC_SEQ_CST);
  if (job->ending == kExit) pthread_exit((void*)7);
  while (job->ending == kAsynchronous) {
    __asm__ volatile("" : "+r"(turns));
  }
  if (job->ending == kDeferred) {
    char byte = 0;
    VICTIM_CHECK(read(never_pipe[0], &byte, 1) == -1);  // Cancelled here.
  }
  pthread_cleanup_pop(1);
  return turns + 1;
}

VICTIM_FUNCTION uint64_t middle_frame(struct Job* job) {
  VICTIM_COUNT(middle_frame);
  uint64_t value = 0;
  pthread_cleanup_push(clean_up, job);
  value = inner_frame(job) + 1;
  pthread_cleanup_pop(1);
  return value;
}

VICTIM_FUNCTION uint64_t outer_frame(struct Job* job) {
  VICTIM_COUNT(outer_frame);
  uint64_t value = 0;
  pthread_cleanup_push(clean_up, job);
  value = middle_frame(job) + 1;
  pthread_cleanup_pop(1);
  return value;
}

static void* thread_main(void* job) {
  return (void*)outer_frame(job);
}

static uint64_t run_one(enum Ending ending) {
  struct Job job = {.ending = ending};
  pthread_t thread;
  VICTIM_CHECK(pthread_create(&thread, NULL, thread_main, &job) == 0);
  while (!__atomic_load_n(&job.reached, __ATOMIC_SEQ_CST)) {
    sched_yield();
  }
  if (ending == kDeferred || ending == kAsynchronous) pthread_cancel(thread);
  void* value = NULL;
  pthread_join(thread, &value);
  void* const expected[kEndings] = {PTHREAD_CANCELED, PTHREAD_CANCELED, (void*)7, (void*)3};
  VICTIM_CHECK(value == expected[ending]);
  VICTIM_CHECK(job.cleaned == 3);
  return (uint64_t)value;
}

const struct VictimCommand victim_commands[] = {{0}};

uint64_t victim_run(uint64_t rounds) {
  if (never_pipe[1] == 0) VICTIM_CHECK(pipe(never_pipe) == 0);
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    digest = victim_mix(digest, run_one((enum Ending)(round % kEndings)));
  }
  return digest;
}
