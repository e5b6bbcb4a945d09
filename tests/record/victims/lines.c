// SPDX-License-Identifier: Apache-2.0
// Prints numbers, each of which follows from the one before, and the sum of all at the end.
#include <stdint.h>
#include <stdio.h>

#define KEPT __attribute__((noinline, noclone))

KEPT static uint64_t next(uint64_t value) {
  for (unsigned i = 0; i < 4000; ++i)
    value = value & 1 ? value * 3 + 1 : value >> 1 ^ i << 20;
  return value;
}

int main(void) {
  uint64_t value = 27, sum = 0;
  for (unsigned i = 0; i < 20000; ++i) {
    value = next(value);
    sum += value;
    printf("%llx\n", (unsigned long long)value);
  }
  printf("sum %llx\n", (unsigned long long)sum);
  return 5;
}
