// SPDX-License-Identifier: Apache-2.0
// A program that many tracers come to at once. Its threads do the same work again and again and
// compare what comes out with what came out at first, when nobody was there. It counts for itself.
//
//     "count"   how many rounds all threads have done, and how many results were wrong, as a line
//     "quit"    ends; the exit status is 0 when every round was right
#include "frame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3

static atomic_ulong rounds;
static atomic_ulong wrong;
static atomic_int over;

// Where gdb has its breakpoints.
__attribute__((noinline, noclone)) uint64_t debugged(uint64_t x) {
  return (x ^ x >> 29) * 2654435769U;
}

static void* work(void* result) {
  while (!atomic_load(&over)) {
    for (uint64_t seed = 1; seed <= 16; ++seed) {
      const uint64_t expected = ((const uint64_t*)result)[seed];
      if (debugged(stress_round(seed)) != expected) atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_add(&rounds, 1);
  }
  return NULL;
}

int main(void) {
  static uint64_t expected[17];
  for (uint64_t seed = 1; seed <= 16; ++seed)
    expected[seed] = debugged(stress_round(seed));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, work, expected);
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("ready");
  for (char line[64]; fgets(line, sizeof line, stdin) != NULL && strcmp(line, "quit\n") != 0;)
    printf("%lu %lu\n", atomic_load(&rounds), atomic_load(&wrong));
  atomic_store(&over, 1);
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  printf("%lu wrong\n", atomic_load(&wrong));
  return atomic_load(&wrong) == 0 ? 0 : 1;
}
