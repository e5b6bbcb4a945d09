// SPDX-License-Identifier: Apache-2.0
// Victim `paced`: after the command `pace` it calls `pause_shortly` one time after the other, which
// takes a millisecond at least: so a window of time has no more calls than milliseconds.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "victim.h"

VICTIM_COUNTER(pause_shortly);

VICTIM_FUNCTION uint64_t pause_shortly(uint64_t turn) {
  VICTIM_COUNT(pause_shortly);
  const struct timespec pause = {.tv_sec = 0, .tv_nsec = 1000000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
  return turn + 1;
}

static void* go_on(void* unused) {
  (void)unused;
  for (uint64_t turn = 0;;)
    turn = pause_shortly(turn) % 7;
  return NULL;
}

static void pace(uint64_t unused) {
  (void)unused;
  pthread_t thread;
  if (pthread_create(&thread, NULL, go_on, NULL) != 0) abort();
  victim_print("paced", 1);
}

const struct VictimCommand victim_commands[] = {{"pace", pace}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, pause_shortly(round));
  return digest;
}
