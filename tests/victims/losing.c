// SPDX-License-Identifier: Apache-2.0
// Victim `losing`: does what makes a tracer lose hits, as hard as it can: signal handlers that
// interrupt probes and that jump out of them, deep recursion, very many threads, a burst of calls,
// pointers to nothing. It also ends in every way there is.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(in_loop);
VICTIM_COUNTER(in_handler);
VICTIM_COUNTER(jumped_from);
VICTIM_COUNTER(nested);
VICTIM_COUNTER(in_thread);
VICTIM_COUNTER(burst_call);
VICTIM_COUNTER(pointed);
VICTIM_COUNTER(jumps);

enum { kThreadStackBytes = 64 * 1024 };

static volatile uint64_t handled;  // Signals.
static sigjmp_buf jump_target;
static timer_t storm;

VICTIM_FUNCTION uint64_t in_loop(uint64_t x) {
  VICTIM_COUNT(in_loop);
  return x * 3 + 1;
}

VICTIM_FUNCTION uint64_t in_handler(uint64_t x) {
  VICTIM_COUNT(in_handler);
  return x + 1;
}

VICTIM_FUNCTION uint64_t jumped_from(uint64_t x) {
  VICTIM_COUNT(jumped_from);
  return x + 3;
}

VICTIM_FUNCTION uint64_t nested(uint64_t depth) {
  VICTIM_COUNT(nested);
  if (depth == 0) return 1;
  uint64_t below = nested(depth - 1);
  __asm__ volatile("" : "+r"(below));  // A call, not a loop.
  return below * 3 + depth;
}

VICTIM_FUNCTION uint64_t in_thread(uint64_t x) {
  VICTIM_COUNT(in_thread);
  return x + 7;
}

VICTIM_FUNCTION uint64_t burst_call(uint64_t x) {
  VICTIM_COUNT(burst_call);
  return x ^ 0x55;
}

VICTIM_FUNCTION uint64_t pointed(const char* text) {
  VICTIM_COUNT(pointed);
  return (uint64_t)(uintptr_t)text;
}

static void on_signal(int number) {
  (void)number;
  in_handler(1);
  ++handled;
}

static void on_jump(int number) {
  (void)number;
  VICTIM_COUNT(jumps);
  ++handled;
  siglongjmp(jump_target, 1);
}

// Interrupts this thread every 20 us, at whatever instruction it has reached.
static void start_storm(int signal, void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler};
  sigaction(signal, &action, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};
  VICTIM_CHECK(timer_create(CLOCK_MONOTONIC, &event, &storm) == 0);
  const struct itimerspec period = {{0, 20000}, {0, 20000}};
  VICTIM_CHECK(timer_settime(storm, 0, &period, NULL) == 0);
}

static void signals(uint64_t count) {
  handled = 0;
  start_storm(SIGUSR1, on_signal);
  for (uint64_t i = 0; handled < count; ++i)
    in_loop(i);
  timer_delete(storm);
}

// The handler never returns to what it interrupted.
static void jumps(uint64_t count) {
  handled = 0;
  if (sigsetjmp(jump_target, 1) == 0) start_storm(SIGUSR2, on_jump);
  for (uint64_t i = 0; handled < count; ++i)
    jumped_from(i);
  signal(SIGUSR2, SIG_IGN);
  timer_delete(storm);
}

static void recurse(uint64_t depth) {
  victim_print("result", nested(depth));
}

static pthread_barrier_t all_there;

static void* live_in_thread(void* argument) {
  in_thread((uint64_t)(uintptr_t)argument);
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait(&all_there);
  return NULL;
}

// All threads are alive at once.
static void threads(uint64_t count) {
  pthread_t* all = calloc(count, sizeof *all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStackBytes);
  pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
  uint64_t started = 0;
  while (started < count && pthread_create(&all[started], &attributes, live_in_thread, NULL) == 0) {
    ++started;
  }
  victim_print("started", started);
  if (started < count) _exit(3);  // The others wait for ever.
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait(&all_there);
  for (uint64_t i = 0; i < count; ++i)
    pthread_join(all[i], NULL);
  free(all);
}

static void burst(uint64_t count) {
  uint64_t digest = 0;
  for (uint64_t i = 0; i < count; ++i)
    digest = victim_mix(digest, burst_call(i));
  victim_print("result", digest);
}

// Every second pointer leads to nothing.
static void pointers(uint64_t count) {
  char* page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (uint64_t i = 0; i < count; ++i)
    pointed(i % 2 == 0 ? "text" : page);
  munmap(page, 4096);
}

static void limit_memory(uint64_t mebibytes) {
  const struct rlimit limit = {mebibytes << 20, mebibytes << 20};
  VICTIM_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void run_another_program(uint64_t unused) {
  (void)unused;
  puts("end");
  fflush(stdout);
  execl("/proc/self/exe", "losing", NULL);
  _exit(3);
}

static void crash(uint64_t unused) {
  (void)unused;
  static int* volatile nowhere;
  *nowhere = 1;
}

const struct VictimCommand victim_commands[] = {{"signals", signals},
                                                {"jumps", jumps},
                                                {"recurse", recurse},
                                                {"threads", threads},
                                                {"burst", burst},
                                                {"pointers", pointers},
                                                {"limit_memory", limit_memory},
                                                {"exec", run_another_program},
                                                {"crash", crash},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, in_loop(round));
  return digest;
}
