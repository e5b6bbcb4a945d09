// SPDX-License-Identifier: Apache-2.0
// Victim `leaderless`: its first thread ends, and another one goes on. The command `leave` does
// that and prints `tid`, that of the thread which lives.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(carry_on);

VICTIM_FUNCTION uint64_t carry_on(uint64_t x) {
  VICTIM_COUNT(carry_on);
  __asm__ volatile("" : "+r"(x));
  return x * 5 + 1;
}

static char state_of_first(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
  FILE* file = fopen(path, "r");
  char state = '?';
  if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
  if (file != NULL) fclose(file);
  return state;
}

static void* take_over(void* unused) {
  while (state_of_first() != 'Z')
    sched_yield();
  victim_print("tid", (uint64_t)gettid());
  puts("end");
  fflush(stdout);
  victim_serve();
  exit(0);
  return unused;
}

static void leave(uint64_t unused) {
  (void)unused;
  pthread_t thread;
  if (pthread_create(&thread, NULL, take_over, NULL) != 0) abort();
  pthread_exit(NULL);
}

const struct VictimCommand victim_commands[] = {{"leave", leave}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, carry_on(round));
  return digest;
}
