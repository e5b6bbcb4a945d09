// SPDX-License-Identifier: Apache-2.0
// Threads that take turns: each takes the next one when the one in front of it has handed it over.
// The last turn crashes. When each turn ran is noted by CLOCK_REALTIME, and printed.
//
//     turns pipes|conditions     how a turn is handed over
//     turns timers               a thread that locks and unlocks, interrupted by a handler that
//                                writes
//     turns forbids              by pipes, in a program that has forbidden itself rdtsc
//     turns forbids_later        the same, in one that forbids it as it is recorded already
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 4, kTurns = 60 };

struct turn {
  int thread;
  int64_t begin;
  int64_t end;
};

static struct turn turns[kTurns];
static int turns_taken;
static int pipes[kThreads][2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile unsigned work;
static volatile int* volatile nowhere;

// Asks the kernel itself: the C library reads the counter.
static int64_t now(void) {
  struct timespec time;
  long result = SYS_clock_gettime;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(CLOCK_REALTIME), "S"(&time)
                   : "rcx", "r11", "memory");
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void crash(void) {
  for (int i = 0; i < kTurns; ++i)
    printf("%d %lld %lld\n", turns[i].thread, (long long)turns[i].begin, (long long)turns[i].end);
  fflush(stdout);
  *nowhere = 0;
}

__attribute__((noinline)) static void take_turn(void) {
  struct turn* own = &turns[turns_taken];
  own->thread = gettid();
  own->begin = now();
  for (unsigned i = 0; i < 1000; ++i)
    work += i;  // LAST: works
  own->end = now();
  if (++turns_taken == kTurns) crash();
}

static void* by_pipes(void* argument) {
  const intptr_t self = (intptr_t)argument;
  char token = 0;
  while (read(pipes[self][0], &token, 1) == 1) {
    take_turn();  // LAST: pipes
    if (write(pipes[(self + 1) % kThreads][1], &token, 1) != 1) abort();
  }
  return NULL;
}

static void* by_conditions(void* argument) {
  const intptr_t self = (intptr_t)argument;
  while (1) {
    pthread_mutex_lock(&lock);
    while (turns_taken % kThreads != self)
      pthread_cond_wait(&changed, &lock);
    take_turn();  // LAST: conditions
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static int devnull;
static volatile unsigned handled;

static void on_timer(int number) {
  (void)number;
  for (int i = 0; i < 3; ++i) {
    if (write(devnull, "", 1) != 1) abort();
    ++handled;
  }
}

static void lock_and_unlock(void) {
  const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  const struct itimerval often = {{0, 200}, {0, 200}};
  devnull = open("/dev/null", O_WRONLY);
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  unsigned locked = 0;
  while (handled < 900) {
    pthread_mutex_lock(&lock);
    ++locked;
    pthread_mutex_unlock(&lock);
  }
  signal(SIGALRM, SIG_IGN);
  if (locked == 0) return;
  *nowhere = 0;
}

int main(int count, char** words) {
  if (count != 2) return 2;
  if (strcmp(words[1], "timers") == 0) {
    lock_and_unlock();
    return 1;
  }
  if (strcmp(words[1], "forbids") == 0) {
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0) return 3;
    execl(words[0], words[0], "pipes", (char*)NULL);
    return 3;
  }
  if (strcmp(words[1], "forbids_later") == 0 && prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
    return 3;
  void* (*const run)(void*) = strcmp(words[1], "conditions") == 0 ? by_conditions : by_pipes;
  for (intptr_t i = 0; i < kThreads; ++i) {
    if (pipe(pipes[i]) != 0) return 3;
  }
  pthread_t threads[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, run, (void*)i) != 0) return 3;
  }
  if (run == by_pipes && write(pipes[0][1], "", 1) != 1) return 3;
  pthread_join(threads[0], NULL);
  return 0;
}
