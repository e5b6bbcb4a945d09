// SPDX-License-Identifier: Apache-2.0
// A program that many tracers come to at once. Its threads do the same work again and again and
// compare what comes out with what came out at first, when nobody was there. It counts for itself.
//
//     "count"   how many rounds all threads have done, and how many results were wrong, as a line
//     "quit"    ends; the exit status is 0 when every round was right
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define NOINLINE __attribute__((noinline, noclone))

static atomic_ulong rounds;
static atomic_ulong wrong;
static atomic_int over;

// Each begins and ends in another way: what a window can be, and how a jump stands in it.
NOINLINE uint64_t pair_short(uint64_t x) {
  return x + 3;
}
NOINLINE uint64_t pair_leaf(uint64_t x) {
  return x * 2654435761U ^ x >> 7;
}
NOINLINE uint64_t pair_tail(uint64_t x) {
  return pair_leaf(x ^ 0x55);
}
NOINLINE uint64_t pair_branches(uint64_t x) {
  if (x == 0) return 1;
  if (x & 1) return pair_short(x) * 3;
  return pair_tail(x >> 1);
}
NOINLINE uint64_t pair_deep(uint64_t x, unsigned depth) {
  if (depth == 0) return pair_branches(x);
  return pair_deep(x + depth, depth - 1) * 31 + depth;
}
NOINLINE uint64_t pair_frame(const uint8_t* bytes, size_t size) {
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ bytes[i]) * 1099511628211U;
  return hash;
}
NOINLINE int pair_compare(const void* a, const void* b) {
  const uint32_t left = *(const uint32_t*)a;
  const uint32_t right = *(const uint32_t*)b;
  return left < right ? -1 : left > right;
}

// The C library is worked with, too: its text is what many sessions want.
NOINLINE uint64_t pair_library(uint64_t seed) {
  char text[128];
  const int length = snprintf(text, sizeof text, "%lu-%s-%08x", seed, "round", (unsigned)seed);
  char* const copy = malloc((size_t)length + 1);
  memcpy(copy, text, (size_t)length + 1);
  uint64_t result = strtoul(copy, NULL, 10) + strlen(copy) + (strchr(copy, '-') - copy);
  result += (uint64_t)strcmp(copy, text);
  free(copy);
  return result;
}

NOINLINE uint64_t debugged(uint64_t x) {
  return (x ^ x >> 29) * 2654435769U;
}

NOINLINE uint64_t pair_round(uint64_t seed) {
  uint32_t values[24];
  uint64_t x = seed;
  for (unsigned i = 0; i < 24; ++i) {
    x = pair_deep(x, 3);
    values[i] = (uint32_t)(x >> 16);
  }
  qsort(values, 24, sizeof values[0], pair_compare);
  return pair_frame((const uint8_t*)values, sizeof values) + debugged(pair_library(seed));
}

static void* work(void* result) {
  while (!atomic_load(&over)) {
    for (uint64_t seed = 1; seed <= 16; ++seed) {
      if (pair_round(seed) != ((const uint64_t*)result)[seed]) atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_add(&rounds, 1);
  }
  return NULL;
}

int main(void) {
  static uint64_t expected[17];
  for (uint64_t seed = 1; seed <= 16; ++seed)
    expected[seed] = pair_round(seed);
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
