// SPDX-License-Identifier: Apache-2.0
// The allocation benchmark of the Fay paper (section 5.3.2): each thread allocates and clears 10
// regions of a random size between 1 byte and 16 KiB, yields, clears and frees them, and loops. One
// command a line on standard input:
//
//     run THREADS ALLOCATIONS    -> seconds, bytes, allocations
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { kRegions = 10, kSizeMax = 16384, kThreadsMax = 1024 };

struct Job {
  uint64_t loops;
  uint64_t seed;
  uint64_t bytes;
};

static uint64_t next_random(uint64_t* state) {  // xorshift64
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void clear(void* region, size_t size) {
  memset(region, 0, size);
  __asm__ volatile("" : : "r"(region) : "memory");
}

static void* thread_main(void* raw) {
  struct Job* job = raw;
  void* regions[kRegions];
  size_t sizes[kRegions];
  for (uint64_t loop = 0; loop < job->loops; ++loop) {
    for (int i = 0; i < kRegions; ++i) {
      sizes[i] = 1 + next_random(&job->seed) % kSizeMax;
      job->bytes += sizes[i];
      regions[i] = malloc(sizes[i]);
      clear(regions[i], sizes[i]);
    }
    sched_yield();
    for (int i = 0; i < kRegions; ++i) {
      clear(regions[i], sizes[i]);
      free(regions[i]);
    }
  }
  return NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void run(int threads, uint64_t allocations) {
  static struct Job jobs[kThreadsMax];
  static pthread_t ids[kThreadsMax];
  uint64_t bytes = 0, loops = 0;
  const double start = now();
  for (int i = 0; i < threads; ++i) {
    jobs[i] = (struct Job){.loops = allocations / kRegions / (uint64_t)threads,
                           .seed = 88172645463325252ULL + (uint64_t)i};
    loops += jobs[i].loops;
    if (pthread_create(&ids[i], NULL, thread_main, &jobs[i]) != 0) exit(1);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    bytes += jobs[i].bytes;
  }
  printf("seconds %.6f\nbytes %llu\nallocations %llu\nend\n", now() - start,
         (unsigned long long)bytes, (unsigned long long)(loops * kRegions));
}

int main(void) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  setvbuf(stdout, NULL, _IOLBF, 1 << 12);
  puts("ready");
  char line[128];
  int threads = 0;
  unsigned long long allocations = 0;
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "run %d %llu", &threads, &allocations) != 2) break;
    if (threads < 1 || threads > kThreadsMax) break;
    run(threads, allocations);
  }
  return 0;
}
