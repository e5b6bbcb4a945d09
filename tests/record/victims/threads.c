// SPDX-License-Identifier: Apache-2.0
// One thread faults while others compute, and one waits in the kernel. Each prints its number. With
// an argument: so many threads one after the other, each with a thread pointer of its own, and the
// last one faults.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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

static void* pass(void* last) {
  if (last == NULL) {
    atomic_fetch_add(&turns, mix(5) & 1);
    return NULL;
  }
  atomic_store(&turns, 1000);
  fault();
  return NULL;
}

static int pass_by(int count) {
  enum { kStack = 64 << 10 };
  char* const stacks = mmap(NULL, (size_t)count * kStack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) return 4;
  for (int i = 0; i < count; ++i) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks + (size_t)i * kStack, kStack);
    if (pthread_create(&thread, &attributes, pass, i + 1 == count ? stacks : NULL) != 0) return 5;
    pthread_join(thread, NULL);
  }
  return 3;
}

int main(int count, char** words) {
  if (count > 1) return pass_by(atoi(words[1]));
  pthread_t threads[kThreads];
  pthread_barrier_init(&all_ran, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i)
    pthread_create(threads + i, NULL, run, (void*)(intptr_t)i);
  for (int i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  return 3;
}
