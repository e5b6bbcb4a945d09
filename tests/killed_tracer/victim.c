// SPDX-License-Identifier: Apache-2.0
// A program whose tracers are killed. It never rests: it does rounds of the same work over and
// over, compares each result with the first one, and notes waits that somebody ended.
//
//     killed_victim                does rounds in the thread that takes the commands
//     killed_victim THREADS        so many threads do, and others wait in system calls
//     killed_victim once ROUNDS    prints the result of so many rounds, and ends
//
// Commands come one per line on stdin; each is answered with lines `name value`, then `end`:
//
//     check     loads and unloads a library; once each thread has done a whole round since: the
//               result of a round; how many had another one; waits that ended early, by epoll and
//               by other calls; the semaphore
//     counts    how often part_0 was called, in whole rounds
//     calm      no more rounds, until
//     storm
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../victims/static_probe.h"

enum { kThreadsMax = 16, kRoundCalls = 20, kRoundsAtOnce = 8, kHourMs = 3600 * 1000 };

// Each on a page of its own, so that arming them takes many writes.
#define PART(number)                                                                         \
  __attribute__((noinline, noclone, aligned(8192))) uint64_t part_##number(uint64_t value) { \
    if ((value & 1) != 0) return value * 3 + number;                                         \
    __asm__ volatile("" : "+r"(value));                                                      \
    return (value >> 1) ^ (number * UINT64_C(0x9E3779B97F4A7C15));                           \
  }                                                                                          \
  uint64_t part_##number(uint64_t value)
PART(0);
PART(1);
PART(2);
PART(3);
PART(4);
PART(5);
PART(6);
PART(7);

__attribute__((noinline, noclone)) uint64_t part_deep(uint64_t depth) {
  if (depth == 0) return 1;
  return part_deep(depth - 1) * 5 + part_0(depth);
}

// Its first instruction, and so a jump in its place, lies on two pages.
uint64_t part_crossing(uint64_t value);
__asm__(
    ".text\n.balign 4096\n.skip 4094, 0xcc\n"
    ".globl part_crossing\n.type part_crossing, @function\npart_crossing:\n"
    "  lea 1(%rdi,%rdi,2), %rax\n"
    "  ret\n"
    ".size part_crossing, . - part_crossing\n");

// The note of a static probe, as <sys/sdt.h> writes it, with a semaphore.
__attribute__((section(".probes"), used)) volatile unsigned short told_semaphore;

__attribute__((noinline, noclone)) void tell(uint64_t value) {
  __asm__ volatile(VICTIM_STATIC_PROBE("killed_victim", "told", "told_semaphore", "8@%0")
                   :
                   : "r"(value));
}

static uint64_t wanted;  // What a round gives; found before anybody traces.
static atomic_ulong errors;
static atomic_ulong epoll_ended;
static atomic_ulong wait_ended;
static atomic_ulong epoll_thread;
static atomic_ulong part_0_calls;
static atomic_int calm;
static atomic_ulong rounds_of[kThreadsMax];
static atomic_ulong turns_of[kThreadsMax];  // Of so many rounds, or none when it is calm.

static uint64_t mix(uint64_t digest, uint64_t value) {
  return ((digest ^ value) * UINT64_C(0x9E3779B97F4A7C15)) ^ (digest >> 29);
}

static uint64_t do_round(void) {
  uint64_t (*const parts[])(uint64_t) = {part_0, part_1, part_2, part_3,       part_4,
                                         part_5, part_6, part_7, part_crossing};
  uint64_t digest = part_deep(5);
  for (uint64_t i = 0; i < kRoundCalls; ++i) {
    for (size_t part = 0; part < sizeof parts / sizeof *parts; ++part)
      digest = mix(digest, parts[part](i));
    tell(i);
  }
  atomic_fetch_add(&part_0_calls, kRoundCalls + 5);
  return digest;
}

static void do_rounds(unsigned long thread) {
  for (int i = 0; i < kRoundsAtOnce && !atomic_load(&calm); ++i) {
    if (do_round() != wanted) atomic_fetch_add(&errors, 1);
    atomic_fetch_add(&rounds_of[thread], 1);
  }
}

static void nap(long nanoseconds) {
  const struct timespec time = {0, nanoseconds};
  if (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) != 0) atomic_fetch_add(&wait_ended, 1);
}

static pthread_barrier_t all_started;

static void* work(void* thread) {
  pthread_barrier_wait(&all_started);
  while (1) {
    do_rounds((unsigned long)thread);
    atomic_fetch_add(&turns_of[(unsigned long)thread], 1);
    nap(20 * 1000);
  }
  return NULL;
}

// --- threads that wait for what never comes
// -------------------------------------------------------

static int quiet_pipe[2];

static void* wait_in_epoll(void* unused) {
  struct epoll_event event = {.events = EPOLLIN};
  const int file = epoll_create1(EPOLL_CLOEXEC);
  atomic_store(&epoll_thread, (unsigned long)gettid());
  epoll_ctl(file, EPOLL_CTL_ADD, quiet_pipe[0], &event);
  pthread_barrier_wait(&all_started);
  while (epoll_wait(file, &event, 1, -1) != 1)
    atomic_fetch_add(&epoll_ended, 1);
  return unused;
}

static void* wait_in_sleep(void* unused) {
  const struct timespec time = {kHourMs / 1000, 0};
  pthread_barrier_wait(&all_started);
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) != 0)
    atomic_fetch_add(&wait_ended, 1);
  return unused;
}

static void* wait_in_futex(void* unused) {
  static int gate;
  const struct timespec time = {kHourMs / 1000, 0};
  pthread_barrier_wait(&all_started);
  while (syscall(SYS_futex, &gate, FUTEX_WAIT, 0, &time, NULL, 0) != 0)
    atomic_fetch_add(&wait_ended, 1);
  return unused;
}

static void start_threads(unsigned long workers) {
  void* (*const waiting[])(void*) = {wait_in_epoll, wait_in_sleep, wait_in_futex};
  const size_t waiting_count = sizeof waiting / sizeof *waiting;
  pthread_t handle;
  if (pipe(quiet_pipe) != 0 || workers >= kThreadsMax) exit(2);
  pthread_barrier_init(&all_started, NULL, (unsigned)(workers + waiting_count + 1));
  for (unsigned long i = 1; i <= workers; ++i)
    pthread_create(&handle, NULL, work, (void*)i);
  for (size_t i = 0; i < waiting_count; ++i)
    pthread_create(&handle, NULL, waiting[i], NULL);
  pthread_barrier_wait(&all_started);
}

// --- commands
// -------------------------------------------------------------------------------------

static void print(const char* name, unsigned long value) {
  printf("%s %lu\n", name, value);
}

// Two more than now, of each worker: the second one has begun after this call.
static void wait_for_two(const atomic_ulong* counts, unsigned long workers) {
  for (unsigned long i = 1; i <= workers; ++i) {
    const unsigned long before = atomic_load(&counts[i]);
    while (atomic_load(&counts[i]) < before + 2)
      nap(100 * 1000);
  }
}

// A tracer may have asked the loader to wait for it.
static void load_library(void) {
  void* const library = dlopen("libm.so.6", RTLD_NOW);
  double (*const root)(double) =
      library == NULL ? NULL : (double (*)(double))dlsym(library, "sqrt");
  if (root == NULL || root(9) != 3) atomic_fetch_add(&errors, 1);
  if (library != NULL) dlclose(library);
}

static void act(const char* word, unsigned long workers) {
  if (strcmp(word, "check") == 0) {
    load_library();
    wait_for_two(rounds_of, workers);
    print("result", do_round());
    print("errors", atomic_load(&errors));
    print("epoll_ended", atomic_load(&epoll_ended));
    print("wait_ended", atomic_load(&wait_ended));
    print("epoll_thread", atomic_load(&epoll_thread));
    print("semaphore", told_semaphore);
  } else if (strcmp(word, "counts") == 0) {
    print("part_0", atomic_load(&part_0_calls));
  } else if (strcmp(word, "calm") == 0) {
    atomic_store(&calm, 1);
    wait_for_two(turns_of, workers);
  } else if (strcmp(word, "storm") == 0) {
    atomic_store(&calm, 0);
  }
  puts("end");
  fflush(stdout);
}

static void take_command(unsigned long workers) {
  char line[64];
  char word[32] = "";
  size_t length = 0;
  // Byte by byte: nothing may wait in a buffer that poll and epoll do not see.
  while (length + 1 < sizeof line) {
    if (read(0, line + length, 1) != 1) exit(0);
    if (line[length++] == '\n') break;
  }
  line[length] = 0;
  if (sscanf(line, "%31s", word) == 1) act(word, workers);
}

// Works for a while, waits for a while.
static void serve_alone(void) {
  struct epoll_event event = {.events = EPOLLIN};
  const int file = epoll_create1(EPOLL_CLOEXEC);
  atomic_store(&epoll_thread, (unsigned long)gettid());
  epoll_ctl(file, EPOLL_CTL_ADD, 0, &event);
  while (1) {
    do_rounds(0);
    const int ready = epoll_wait(file, &event, 1, 1);
    if (ready < 0) atomic_fetch_add(&epoll_ended, 1);
    if (ready > 0) take_command(0);
  }
}

static void serve(unsigned long workers) {
  while (1) {
    struct pollfd entry = {0, POLLIN, 0};
    const int ready = poll(&entry, 1, kHourMs);
    if (ready < 0) atomic_fetch_add(&wait_ended, 1);
    if (ready > 0) take_command(workers);
  }
}

int main(int argc, char** argv) {
  if (argc > 2) {
    uint64_t digest = 0;
    for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; --i)
      digest = mix(digest, do_round());
    print("result", digest);
    return 0;
  }
  const unsigned long workers = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
  // Yama may restrict attaching to descendants; the tracer is our sibling.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  wanted = do_round();
  if (workers != 0) start_threads(workers);
  puts("ready");
  fflush(stdout);
  if (workers == 0) serve_alone();
  serve(workers);
}
