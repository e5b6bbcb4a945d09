// SPDX-License-Identifier: Apache-2.0
// Executes another program, in the way that its first word says. It waits for what it started, says
// how that ended, and whether it ever stopped; computes on, and ends with 7.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

extern char** environ;

enum { kThreads = 4 };
static pthread_barrier_t all_ran;
static _Atomic(unsigned) sum;
static volatile sig_atomic_t signals;

KEPT static void work(unsigned i) {
  if (i % 3 == 0) sum += i;
  sum ^= i << 1;
}

static void count(int signal) {
  (void)signal;
  ++signals;
}

static void* compute(void* unused) {
  (void)unused;
  pthread_barrier_wait(&all_ran);
  for (unsigned i = 0;; ++i)
    work(i);
  return NULL;
}

static void* execute(void* words) {
  pthread_barrier_wait(&all_ran);
  execv(((char**)words)[0], words);
  _exit(1);
}

KEPT static pid_t start(const char* way, char** words) {
  pid_t child = -1;
  if (strcmp(way, "spawn") == 0) {
    return posix_spawn(&child, words[0], NULL, NULL, words, environ) == 0 ? child : -1;
  }
  child = strcmp(way, "vfork") == 0 ? vfork() : fork();
  if (child != 0) return child;
  execv(words[0], words);
  _exit(1);
}

static int start_and_wait(const char* way, int times, char** words) {
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  for (int i = 0; i < times; ++i) {
    const pid_t child = start(way, words);
    if (child < 0) return 2;
    for (unsigned turn = 0; turn < 1000; ++turn)
      work(turn);
    int status = 0;
    if (waitpid(child, &status, WUNTRACED | WCONTINUED) != child) return 3;
    if (i + 1 == times) printf("status %#x\n", status);
  }
  printf("%d signals, %u\n", (int)signals, sum);
  return 7;
}

int main(int word_count, char** words) {
  if (word_count < 4) return 4;
  const char* const way = words[1];
  char** const program = words + 3;
  if (strcmp(way, "exec") == 0) return execv(program[0], program);
  if (strcmp(way, "thread") != 0) return start_and_wait(way, atoi(words[2]), program);
  pthread_t threads[kThreads];
  pthread_barrier_init(&all_ran, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i)
    pthread_create(threads + i, NULL, i == 0 ? execute : compute, program);
  pthread_join(threads[0], NULL);
  return 5;
}
