// SPDX-License-Identifier: Apache-2.0
// What does a join in place cost a hit? `time FUNCTION BURSTS CALLS` calls one of these functions
// in a request, in which something is packed and put, and answers with ns_per_call, the median of
// the bursts in CPU time, and `calls`.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBurstsMax = 1000 };

#define TRACED __attribute__((noinline, noclone))

static volatile uint64_t sink;
static double bursts[kBurstsMax];

TRACED void begins(uint64_t object) {
  sink += object;
}
TRACED void packs(uint64_t object) {
  sink += object + 1;
}
TRACED void unpacks(uint64_t object) {
  sink += object + 2;
}
TRACED void puts_it(uint64_t object) {
  sink += object + 3;
}
TRACED void takes_it(uint64_t object) {
  sink += object + 4;
}
TRACED void joins_it(uint64_t object) {
  sink += object + 5;
}

static const struct {
  const char* name;
  void (*call)(uint64_t object);
} kFunctions[] = {{"begins", begins},   {"packs", packs},       {"unpacks", unpacks},
                  {"puts_it", puts_it}, {"takes_it", takes_it}, {"joins_it", joins_it}};

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(void (*call)(uint64_t), long count, long calls) {
  begins(7);
  packs(7);
  puts_it(7);
  for (long i = 0; i < count; ++i) {
    const double begin = now_ns();
    for (long k = 0; k < calls; ++k)
      call(7);
    bursts[i] = (now_ns() - begin) / (double)calls;
  }
  qsort(bursts, (size_t)count, sizeof *bursts, compare);
  printf("ns_per_call %.2f\ncalls %ld\nend\n", bursts[count / 2], count * calls);
}

int main(void) {
  char name[16];
  long count, calls;
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("ready");
  while (scanf(" time %15s %ld %ld", name, &count, &calls) == 3) {
    if (count <= 0 || count > kBurstsMax) return 1;
    for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; ++i) {
      if (strcmp(kFunctions[i].name, name) == 0) measure(kFunctions[i].call, count, calls);
    }
  }
  return 0;
}
