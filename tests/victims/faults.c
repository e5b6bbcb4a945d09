// SPDX-License-Identifier: Apache-2.0
// Victim `faults`: one thread that faults all the time and jumps out of the handler, and a timer
// besides. `hunt` goes on so until the next command comes.
#define _GNU_SOURCE
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "victim.h"

VICTIM_COUNTER(fault_at);
VICTIM_COUNTER(fault_tick);  // Called by the timer's handler.
VICTIM_COUNTER(fault_work);

enum { kTimerMicroseconds = 500, kRoundsBetweenLooks = 64 };

static sigjmp_buf back;
static const volatile char* wanted;
static uint64_t handled;

VICTIM_FUNCTION uint64_t fault_work(uint64_t x) {
  VICTIM_COUNT(fault_work);
  return victim_mix(x, 31);
}

VICTIM_FUNCTION uint64_t fault_tick(uint64_t x) {
  VICTIM_COUNT(fault_tick);
  return victim_mix(x, 37);
}

// Its first instruction faults, or the copy of that.
VICTIM_FUNCTION int fault_at(const volatile char* at) {
  return *at;
}

static void handle_fault(int number, siginfo_t* info, void* unused) {
  (void)number;
  (void)unused;
  VICTIM_CHECK(info->si_addr == (const void*)wanted && info->si_code == SEGV_MAPERR);
  ++handled;
  siglongjmp(back, 1);
}

static void handle_timer(int number) {
  VICTIM_CHECK(fault_tick((uint64_t)number) == victim_mix((uint64_t)number, 37));
}

static void set_signals(long timer_microseconds) {
  const struct sigaction fault = {.sa_sigaction = handle_fault, .sa_flags = SA_SIGINFO};
  const struct sigaction tick = {.sa_handler = handle_timer, .sa_flags = SA_RESTART};
  sigaction(SIGSEGV, &fault, NULL);
  sigaction(SIGALRM, &tick, NULL);
  const struct itimerval timer = {.it_interval = {.tv_usec = timer_microseconds},
                                  .it_value = {.tv_usec = timer_microseconds}};
  VICTIM_CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static uint64_t one_round(uint64_t round) {
  const uint64_t before = handled;
  wanted = (const volatile char*)(1 + round % 4000);
  if (sigsetjmp(back, 1) == 0) {
    VICTIM_COUNT(fault_at);
    VICTIM_CHECK(fault_at(wanted) == -1000);  // Never comes back.
  }
  VICTIM_CHECK(handled == before + 1);
  return fault_work(round);
}

static void hunt(uint64_t unused) {
  (void)unused;
  set_signals(kTimerMicroseconds);
  struct pollfd input = {.fd = 0, .events = POLLIN};
  for (uint64_t round = 0; round % kRoundsBetweenLooks != 0 || poll(&input, 1, 0) != 1; ++round)
    one_round(round);
  set_signals(0);
}

const struct VictimCommand victim_commands[] = {{"hunt", hunt}, {0}};

uint64_t victim_run(uint64_t rounds) {
  set_signals(kTimerMicroseconds);
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, one_round(round));
  set_signals(0);
  return digest;
}
