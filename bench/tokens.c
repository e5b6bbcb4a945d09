// SPDX-License-Identifier: Apache-2.0
// What does a token cost? `time BURSTS PAIRS REST_US` makes and sends PAIRS tokens, then receives
// them, in each burst, which is a request, and answers with ns_per_send and ns_per_receive, the
// medians of the bursts in CPU time, and `pairs`. Between bursts it rests, so that rings are read.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clew/cause.h"

enum { kBurstsMax = 1000, kPairsMax = 100000 };

static char tokens[kPairsMax][CLEW_CAUSE_TEXT];
static double sends[kBurstsMax], receives[kBurstsMax];

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, long count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

__attribute__((noinline, noclone)) long burst(long number, long pairs) {
  long read = 0;
  const double begin = now_ns();
  for (long i = 0; i < pairs; ++i)
    clew_cause_send_text(tokens[i]);
  const double middle = now_ns();
  for (long i = 0; i < pairs; ++i)
    read += clew_cause_receive_text(tokens[i], CLEW_CAUSE_TEXT - 1);
  sends[number] = (middle - begin) / (double)pairs;
  receives[number] = (now_ns() - middle) / (double)pairs;
  return read;
}

int main(void) {
  long count, pairs, rest_us;
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("ready");
  while (scanf(" time %ld %ld %ld", &count, &pairs, &rest_us) == 3) {
    long read = 0;
    if (count <= 0 || count > kBurstsMax || pairs <= 0 || pairs > kPairsMax) return 1;
    for (long i = 0; i < count; ++i) {
      clew_cause_begin();
      read += burst(i, pairs);
      clew_cause_end();
      usleep((useconds_t)rest_us);
    }
    printf("ns_per_send %.2f\nns_per_receive %.2f\npairs %ld\nend\n", median(sends, count),
           median(receives, count), read);
  }
  return 0;
}
