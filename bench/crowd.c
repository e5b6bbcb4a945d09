// SPDX-License-Identifier: Apache-2.0
// A hundred threads that work in turns and wait between them: THREADS [TURNS]. Says "ready" when
// each has had so many turns, and ends with its input.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kStepsOfATurn = 2000, kThreadsMax = 1000 };

static atomic_uint sum;
static atomic_uint ready;
static unsigned turns = 20;

static __attribute__((noinline)) unsigned odd_step(unsigned value) {
  return value % 3 == 0 ? value / 3 : 3 * value + 1;
}

static __attribute__((noinline)) unsigned even_step(unsigned value) {
  return value % 4 == 0 ? value / 4 : value / 2;
}

static void* work(void* seed) {
  unsigned value = (unsigned)(size_t)seed + 1;
  for (unsigned turn = 0;; ++turn) {
    for (unsigned i = 0; i < kStepsOfATurn; ++i)
      value = value % 2 != 0 ? odd_step(value + i) : even_step(value + i);
    atomic_fetch_add(&sum, value);
    if (turn == turns) atomic_fetch_add(&ready, 1);
    usleep(2000);
  }
  return NULL;
}

int main(int count, char** arguments) {
  const unsigned threads = count > 1 ? (unsigned)atoi(arguments[1]) : 100;
  if (count > 2) turns = (unsigned)atoi(arguments[2]);
  if (threads == 0 || threads > kThreadsMax) return 2;
  for (unsigned i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void*)(size_t)i) != 0) return 1;
  }
  while (atomic_load(&ready) < threads)
    usleep(1000);
  puts("ready");
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
