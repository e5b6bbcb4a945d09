// SPDX-License-Identifier: Apache-2.0
// Many threads, or many processes, each of which computes what follows from its number; says
// whether all of it was right, and then faults.
//
//     crowds threads COUNT LIVING     so many of them live at once
//     crowds processes COUNT LIVING   each with a child of its own, and a thread
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

enum { kLivingMax = 10000, kStackBytes = 64 << 10 };
static unsigned wrong;
static pthread_t threads[kLivingMax];
static pid_t processes[kLivingMax];
static pthread_mutex_t all_made = PTHREAD_MUTEX_INITIALIZER;
static int* volatile nowhere;

KEPT static uint64_t step(uint64_t value, unsigned i) {
  return value & 1 ? value * 3 + i : value >> 1 ^ (uint64_t)i << 9;
}

KEPT static uint64_t compute(uint64_t number) {
  uint64_t value = number * 977 + 1;
  for (unsigned i = 0; i < 500; ++i)
    value = step(value, i);
  return value;
}

// The same in other words, with functions of its own.
KEPT static uint64_t truth(uint64_t number) {
  uint64_t value = number * 977 + 1;
  for (unsigned i = 0; i < 500; ++i) {
    if (value & 1) {
      value = value * 3 + i;
    } else {
      value = value >> 1 ^ (uint64_t)i << 9;
    }
  }
  return value;
}

// None ends before the last one of its round is made.
static void* run(void* number) {
  pthread_mutex_lock(&all_made);
  pthread_mutex_unlock(&all_made);
  return (void*)(uintptr_t)compute((uintptr_t)number);
}

static int round_of_threads(int from, int count) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_mutex_lock(&all_made);
  for (int i = 0; i < count; ++i) {
    if (pthread_create(threads + i, &attributes, run, (void*)(uintptr_t)(from + i)) != 0) return 1;
  }
  pthread_mutex_unlock(&all_made);
  for (int i = 0; i < count; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    wrong += (uint64_t)(uintptr_t)result != truth((uint64_t)(from + i));
  }
  return 0;
}

// Its own child's, and its thread's results are its own.
static int live(int number, int depth) {
  if (round_of_threads(number, 1) != 0) return 1;
  const uint64_t here = compute((uint64_t)number);
  wrong += here != truth((uint64_t)number);
  int status = 0;
  if (depth > 0) {
    const pid_t child = fork();
    if (child == 0) _exit(live(number + 1, depth - 1));
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  }
  return wrong != 0 || status != 0;
}

static int round_of_processes(int from, int count) {
  for (int i = 0; i < count; ++i) {
    processes[i] = fork();
    if (processes[i] == 0) _exit(live(from + i, 1));
    if (processes[i] < 0) return 1;
  }
  for (int i = 0; i < count; ++i) {
    int status = 0;
    wrong += waitpid(processes[i], &status, 0) != processes[i] || status != 0;
  }
  return 0;
}

KEPT static void fault(void) {
  *(volatile int*)nowhere = 1;  // LAST: crowds
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const int all = atoi(words[2]);
  const int living = atoi(words[3]);
  if (living > kLivingMax || living < 1) return 2;
  for (int from = 0; from < all; from += living) {
    const int now = all - from < living ? all - from : living;
    const int failed = strcmp(words[1], "threads") == 0 ? round_of_threads(from, now)
                                                        : round_of_processes(from, now);
    if (failed) return 3;
  }
  printf("%u wrong of %d\n", wrong, all);
  fflush(stdout);
  fault();
  return 4;
}
