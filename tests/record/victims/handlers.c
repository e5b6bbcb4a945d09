// SPDX-License-Identifier: Apache-2.0
// Signals that are caught, ignored, or end it. The argument names the way; see main.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static char* pages;
static volatile unsigned long handled;
static int* volatile nowhere;
static volatile unsigned noise[16];

static void repair(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  char* const page = (char*)((uintptr_t)info->si_addr & ~(uintptr_t)4095);
  if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) _exit(2);
  ++handled;
}

KEPT static unsigned touch(unsigned pages_count) {
  unsigned sum = 0;
  for (unsigned i = 0; i < pages_count; ++i) {
    pages[4096ul * i] = (char)i;
    if (i % 3 == 0) sum += i * 7;
    sum ^= (unsigned char)pages[4096ul * i];
  }
  return sum;
}

static int repairs(void) {
  const struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  pages = mmap(NULL, 4096 * 1000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const unsigned sum = touch(1000);
  printf("%u %lu\n", sum, handled);
  return 0;
}

// The handler returns, and what it has interrupted goes on, without a call or a loop.
KEPT static int goes_on(int number) {
  const struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  pages = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return 2;
  signal(SIGFPE, SIG_DFL);
  pages[0] = 1;  // PASSED: interrupted
  if (number == 7)
    noise[1] = 5;  // PASSED: behind
  else
    noise[2] = 6;
  if (noise[3] != 0) noise[4] = 7;
  __asm__ volatile("ud2");  // LAST: goes_on
  return 3;
}

static void raise_again(int number) {
  ++handled;
  signal(number, SIG_DFL);
  raise(number);
}

KEPT static int raises_again(void) {
  signal(SIGSEGV, raise_again);
  *(volatile int*)nowhere = 1;  // LAST: again
  return 3;
}

// The handler is left as the fault is done again: the second one kills.
static void once(int number) {
  ++handled;
  signal(number, SIG_DFL);
}

KEPT static int faults_twice(void) {
  signal(SIGSEGV, once);
  *(volatile int*)nowhere = 1;  // LAST: twice
  return 3;
}

// What a thread computes, from nothing but the number of the turn.
KEPT static uint64_t step(uint64_t value, unsigned turn) {
  switch (turn % 7) {
    case 0:
      return value * 6364136223846793005u + turn;
    case 1:
      return value ^ value >> 13;
    case 2:
      return value + (value << 5);
    case 3:
      return value & 1 ? value * 3 + 1 : value / 2;
    case 4:
      return ~value;
    case 5:
      return value % 1000003 == 7 ? 0 : value - turn;
    default:
      return value << 7 | value >> 57;
  }
}

static volatile uint64_t seed = 12345;

KEPT static uint64_t compute(void) {
  uint64_t value = seed;
  double real = 1.5;
  for (unsigned turn = 0; turn < 20000; ++turn) {
    value = step(value, turn);
    if (value % 5 == 0) real = real * 1.0001 + (double)(value % 3);
    if (real > 1e9) real = 1.25;
  }
  uint64_t bits = 0;
  memcpy(&bits, &real, sizeof bits);
  return value ^ bits;
}

KEPT static unsigned scatter(unsigned number) {
  if (number % 3 == 0) return number * 5;
  return number % 7 < 3 ? number + 2 : number ^ 9;
}

static void on_timer(int number) {
  (void)number;
  for (unsigned i = 0; i < 1 + handled % 9; ++i)
    noise[i] += scatter((unsigned)handled + i);
  ++handled;
}

static int timed(void) {
  const uint64_t right = compute();
  const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, NULL);
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  unsigned long turns = 0, wrong = 0;
  do {
    if (compute() != right) ++wrong;
    ++turns;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < 3);
  signal(SIGALRM, SIG_IGN);
  printf("%lu wrong of %lu; %lu signals\n", wrong, turns, handled);
  return wrong == 0 && handled > 100 ? 0 : 1;
}

// Says that it has begun, then waits for what the test sends.
static void waits(void) {
  puts("waits");
  fflush(stdout);
  while (1)
    pause();
}

static void* exits_later(void* status) {
  exit((int)(intptr_t)status);
}

static void* pauses(void* nothing) {
  pause();
  return nothing;
}

// One of several threads ends the process; the first one has ended already.
static int exits_with_others(int status) {
  pthread_t thread;
  for (int i = 0; i < 3; ++i)
    if (pthread_create(&thread, NULL, pauses, NULL) != 0) return 2;
  if (pthread_create(&thread, NULL, exits_later, (void*)(intptr_t)status) != 0) return 2;
  pthread_exit(NULL);
}

static void on_interrupt(int number) {
  (void)number;
  // What has been interrupted may be a puts().
  const char text[] = "interrupted\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(1);
  _exit(9);
}

int main(int count, char** words) {
  if (count < 2) return 2;
  const char* const way = words[1];
  if (strcmp(way, "repairs") == 0) return repairs();
  if (strcmp(way, "goes_on") == 0) return goes_on(count + 5);
  if (strcmp(way, "again") == 0) return raises_again();
  if (strcmp(way, "twice") == 0) return faults_twice();
  if (strcmp(way, "timed") == 0) return timed();
  if (strcmp(way, "exits") == 0) return atoi(words[2]);
  if (strcmp(way, "exits_with_others") == 0) return exits_with_others(atoi(words[2]));
  if (strcmp(way, "raises") == 0) return raise(atoi(words[2]));
  if (strcmp(way, "ignores") == 0) {
    signal(SIGQUIT, SIG_IGN);
    return raise(SIGQUIT);
  }
  if (strcmp(way, "waits") == 0) waits();
  if (strcmp(way, "catches") == 0) {
    signal(SIGINT, on_interrupt);
    waits();
  }
  return 2;
}
