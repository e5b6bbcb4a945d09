// SPDX-License-Identifier: Apache-2.0
// Work of a program under stress: small functions of all kinds, and the C library.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define NOINLINE __attribute__((noinline, noclone))

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

NOINLINE uint64_t pair_round(uint64_t seed) {
  uint32_t values[24];
  uint64_t x = seed;
  for (unsigned i = 0; i < 24; ++i) {
    x = pair_deep(x, 3);
    values[i] = (uint32_t)(x >> 16);
  }
  qsort(values, 24, sizeof values[0], pair_compare);
  return pair_frame((const uint8_t*)values, sizeof values) + pair_library(seed);
}

uint64_t stress_round(uint64_t seed) {
  return pair_round(seed);
}
