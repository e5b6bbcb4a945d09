// SPDX-License-Identifier: Apache-2.0
// One thread faults while others compute, and one waits in the kernel. Each prints its number.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

enum { kThreads = 6 };
static pthread_barrier_t all_ran;
static _Atomic(uint64_t) turns;
static int* volatile nowhere;

KEPT static uint64_t mix(uint64_t value) {
  return value % 3 == 0 ? value * 31 : value ^ value >> 7;
}

KEPT static void compute(void) {
  for (uint64_t value = 1;; value = mix(value) + 1)
    atomic_fetch_add(&turns, value & 1);
}

KEPT static void fault(void) {
  while (atomic_load(&turns) < 1000)
    continue;
  *(volatile int*)nowhere = 1;  // LAST: thread
}

static void* run(void* argument) {
  const int number = (int)(intptr_t)argument;
  printf("%s %ld\n",
         number == 0   ? "faults"
         : number == 1 ? "waits"
                       : "computes",
         syscall(SYS_gettid));
  fflush(stdout);
  pthread_barrier_wait(&all_ran);
  if (number == 0) fault();
  if (number == 1) pause();
  compute();
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&all_ran, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i)
    pthread_create(threads + i, NULL, run, (void*)(intptr_t)i);
  for (int i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  return 3;
}
