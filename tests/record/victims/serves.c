// SPDX-License-Identifier: Apache-2.0
// Threads that work on and on, each on a sum that follows from the one before, and that tell at the
// end whether all was as it should be: after a round they begin again. Runs before anybody records
// it. The first argument is the number of threads, without the first one; then a line of standard
// input says what is to be done:
//
//     crash         the first thread stores to nowhere
//     thread        one of the others does
//     fork          a child does, and the answer is its status
//     vfork         one thread waits for a child on its memory, again and again, until the end: one
//                   in eight works for some milliseconds and starts another program, the others end
//     child         a child is there until a line comes, and works
//     load FILE     opens loaded.c's library, and calls what is in it
//     loaded        which stores to nowhere
//     turns         so many has the first of the others done
//     end           all threads compare their sums with those that follow from the beginning
//
// It answers each with a line, but for what ends it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

enum { kThreadsMax = 64, kRound = 4096 };
struct worker {
  pthread_t thread;
  _Atomic(uint64_t) turns;
  uint64_t sum;
  uint64_t round;  // The sum of the first whole one.
  int wrong;       // Others.
};
static struct worker workers[kThreadsMax];
static int worker_count;
static pthread_t vforking;
static _Atomic(int) is_over;
static _Atomic(int) shall_fault;
static int* volatile nowhere;
static void* library;

KEPT static uint64_t odd(uint64_t value) {
  return value * 3 + 1;
}

KEPT static uint64_t even(uint64_t value, uint64_t turn) {
  return value >> 1 ^ turn << 20;
}

KEPT static uint64_t next(uint64_t value, uint64_t turn) {
  for (unsigned i = 0; i < 64; ++i)
    value = value & 1 ? odd(value) : even(value, turn + i);
  return value;
}

KEPT static int compare(const void* one, const void* other) {
  const uint64_t a = *(const uint64_t*)one, b = *(const uint64_t*)other;
  return a < b ? -1 : a > b;
}

// Through the C library and back, with a callback.
KEPT static uint64_t middle(uint64_t value) {
  uint64_t some[5];
  for (unsigned i = 0; i < 5; ++i)
    some[i] = value = next(value, i);
  qsort(some, 5, sizeof *some, compare);
  return some[2];
}

KEPT static uint64_t sum_of(uint64_t number, uint64_t turns) {
  uint64_t sum = number;
  for (uint64_t i = 0; i < turns; ++i)
    sum = next(sum, i) + middle(sum);
  return sum;
}

KEPT static void fault(int value) {
  *(volatile int*)nowhere = value;  // LAST: serves
}

KEPT static uint64_t turn(uint64_t sum, uint64_t i) {
  return next(sum, i) + middle(sum);
}

static void* work(void* argument) {
  struct worker* const own = argument;
  own->sum = (uint64_t)(own - workers);
  for (uint64_t i = 0; !atomic_load(&is_over); ++i) {
    if (i == kRound) {
      if (own->round == 0) own->round = own->sum;
      own->wrong += own->sum != own->round;
      own->sum = (uint64_t)(own - workers);
      i = 0;
    }
    own->sum = turn(own->sum, i);
    atomic_fetch_add(&own->turns, 1);
    if (own == workers && atomic_load(&shall_fault)) fault((int)own->sum);
  }
  return argument;
}

// Each has had a turn at least, though it gets the processor late.
static int end(void) {
  int wrong = 0;
  for (int i = 0; i < worker_count; ++i) {
    while (atomic_load(&workers[i].turns) == 0)
      sched_yield();
  }
  atomic_store(&is_over, 1);
  if (vforking != 0) pthread_join(vforking, NULL);
  for (int i = 0; i < worker_count; ++i) {
    pthread_join(workers[i].thread, NULL);
    const uint64_t turns = (atomic_load(&workers[i].turns) - 1) % kRound + 1;
    const uint64_t round = workers[i].round;
    wrong += workers[i].wrong + (workers[i].sum != sum_of((uint64_t)i, turns));
    wrong += round != 0 && round != sum_of((uint64_t)i, kRound);
  }
  printf("%d wrong\n", wrong);
  return wrong == 0 ? 9 : 4;
}

static void answer(long value) {
  printf("%ld\n", value);
  fflush(stdout);
}

static void in_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    fault((int)sum_of(7, 3));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  answer(WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static void* vfork_on(void* argument) {
  for (volatile uint64_t i = 0; !atomic_load(&is_over); ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      if (i % 8 != 0) _exit(0);
      for (int k = 0; k < 3000; ++k)
        (void)next(i, (uint64_t)k);
      execl("/bin/true", "true", (char*)NULL);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) abort();
  }
  return argument;
}

// Works until it is killed.
static void with_child(void) {
  const pid_t child = fork();
  for (uint64_t i = 0; child == 0; ++i)
    workers[0].sum = turn(workers[0].sum, i);
  answer(child);
}

static void load(const char* file) {
  library = dlopen(file, RTLD_NOW);
  if (library == NULL) exit(6);
  answer(((unsigned (*)(unsigned))dlsym(library, "loaded_calls"))(5));
}

// One line after the other, by a call each, so that all of them are on the stack.
KEPT static int obey(int depth) {
  char line[512];
  if (fgets(line, sizeof line, stdin) == NULL) return 5;
  line[strcspn(line, "\n")] = 0;
  if (strcmp(line, "end") == 0) return end();
  if (strcmp(line, "crash") == 0) fault(depth);
  if (strcmp(line, "thread") == 0) {
    atomic_store(&shall_fault, 1);
    pause();
  }
  if (strcmp(line, "fork") == 0) in_child();
  if (strcmp(line, "vfork") == 0) {
    pthread_create(&vforking, NULL, vfork_on, NULL);
    answer(0);
  }
  if (strcmp(line, "child") == 0) with_child();
  if (strncmp(line, "load ", 5) == 0) load(line + 5);
  if (strcmp(line, "loaded") == 0) ((void (*)(int))dlsym(library, "loaded_faults"))(2);
  if (strcmp(line, "turns") == 0) answer((long)atomic_load(&workers[0].turns));
  const int status = obey(depth + 1);
  return status ^ (line[0] == 0);  // Which makes no loop of it.
}

int main(int count, char** words) {
  worker_count = count > 1 ? atoi(words[1]) : 0;
  if (worker_count > kThreadsMax) return 2;
  for (int i = 0; i < worker_count; ++i)
    pthread_create(&workers[i].thread, NULL, work, workers + i);
  printf("%ld\n", (long)getpid());
  fflush(stdout);
  return obey(0);
}
