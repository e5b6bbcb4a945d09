// SPDX-License-Identifier: Apache-2.0
// Victim `storms`: signals that arrive all the time while traced code runs, whose handler calls
// traced code too, and children that are made with vfork and posix_spawn by several threads. A
// round has a fixed number of each; a storm goes on until it is calmed.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(storm_work);
VICTIM_COUNTER(storm_signal);  // Called by the handler.
VICTIM_COUNTER(storm_child);   // Called by children that run on this memory.

enum { kChildren = 8, kCallsPerRound = 2000, kSpawners = 2, kTimerMicroseconds = 50 };

extern char** environ;
static pthread_t worker, signaller, spawners[kSpawners];
static int stormy;

VICTIM_FUNCTION uint64_t storm_work(uint64_t x) {
  VICTIM_COUNT(storm_work);
  return victim_mix(x, 19);
}

VICTIM_FUNCTION uint64_t storm_signal(uint64_t x) {
  VICTIM_COUNT(storm_signal);
  return victim_mix(x, 23);
}

VICTIM_FUNCTION uint64_t storm_child(uint64_t x) {
  VICTIM_COUNT(storm_child);
  return victim_mix(x, 29);
}

static void handle(int number) {
  VICTIM_CHECK(storm_signal((uint64_t)number) == victim_mix((uint64_t)number, 23));
}

static void set_timer(long microseconds) {
  const struct itimerval timer = {.it_interval = {.tv_usec = microseconds},
                                  .it_value = {.tv_usec = microseconds}};
  VICTIM_CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static int wait_status(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0) {
  }
  return status;
}

// The child runs traced code on our memory before it is another program.
static void run_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) {
    const int right = storm_child(5) == victim_mix(5, 29);
    if (!right) _exit(1);
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  VICTIM_CHECK(child > 0 && wait_status(child) == 0);
}

static void run_spawn(void) {
  char* const arguments[] = {"true", NULL};
  pid_t child = 0;
  VICTIM_CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
  VICTIM_CHECK(wait_status(child) == 0);
}

static uint64_t work(uint64_t seed) {
  uint64_t digest = seed;
  for (int i = 0; i < kCallsPerRound; ++i)
    digest = storm_work(digest);
  return digest;
}

static void* work_on(void* unused) {
  for (uint64_t round = 0; __atomic_load_n(&stormy, __ATOMIC_RELAXED); ++round)
    VICTIM_CHECK(work(round) != 0);
  return unused;
}

static void* signal_on(void* unused) {
  while (__atomic_load_n(&stormy, __ATOMIC_RELAXED)) {
    pthread_kill(worker, SIGUSR1);
    pthread_kill(worker, SIGUSR2);
  }
  return unused;
}

static void* spawn_on(void* unused) {
  while (__atomic_load_n(&stormy, __ATOMIC_RELAXED)) {
    run_vfork();
    run_spawn();
  }
  return unused;
}

static void catch_signals(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
}

static void begin(uint64_t unused) {
  (void)unused;
  catch_signals();
  __atomic_store_n(&stormy, 1, __ATOMIC_RELAXED);
  VICTIM_CHECK(pthread_create(&worker, NULL, work_on, NULL) == 0);
  VICTIM_CHECK(pthread_create(&signaller, NULL, signal_on, NULL) == 0);
  for (int i = 0; i < kSpawners; ++i)
    VICTIM_CHECK(pthread_create(&spawners[i], NULL, spawn_on, NULL) == 0);
  set_timer(kTimerMicroseconds);
}

static void calm(uint64_t unused) {
  (void)unused;
  set_timer(0);
  __atomic_store_n(&stormy, 0, __ATOMIC_RELAXED);
  pthread_join(signaller, NULL);
  pthread_join(worker, NULL);
  for (int i = 0; i < kSpawners; ++i)
    pthread_join(spawners[i], NULL);
}

const struct VictimCommand victim_commands[] = {{"begin", begin}, {"calm", calm}, {0}};

// Signals from the timer hit whatever runs: the children's start as well.
uint64_t victim_run(uint64_t rounds) {
  catch_signals();
  set_timer(kTimerMicroseconds);
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kChildren; ++i) {
      run_vfork();
      run_spawn();
    }
    digest = victim_mix(digest, work(round));
  }
  set_timer(0);
  return digest;
}
