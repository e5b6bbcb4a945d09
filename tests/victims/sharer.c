// SPDX-License-Identifier: Apache-2.0
// Victim `sharer`: another process runs on its memory and with its thread pointer (CLONE_VM without
// CLONE_THREAD or CLONE_SETTLS), as some runtimes have them. `share` starts it, `unshare` ends it;
// meanwhile it calls `shared_work`, and prints nothing.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

enum { STACK_BYTES = 65536 };

VICTIM_COUNTER(shared_work);

static volatile int goes_on;
static volatile uint64_t turns;
static pid_t sharer;

VICTIM_FUNCTION uint64_t shared_work(uint64_t x) {
  __asm__ volatile("" : "+r"(x));
  return x * 5 + 1;
}

// No libc: its thread pointer is the other process's.
static int share(void* unused) {
  (void)unused;
  uint64_t x = 1;
  while (goes_on) {
    x = shared_work(x);
    turns = turns + 1;
  }
  return 0;
}

static void start(uint64_t unused) {
  (void)unused;
  char* const stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) abort();
  goes_on = 1;
  sharer = clone(share, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
  if (sharer < 0) abort();
  while (turns == 0)
    sched_yield();
  victim_print("sharer", (uint64_t)sharer);
}

// Waits until the sharer has made some turns more.
static void turn(uint64_t more) {
  const uint64_t wanted = turns + more;
  while (turns < wanted)
    sched_yield();
  victim_print("turns", turns);
}

static void stop(uint64_t unused) {
  (void)unused;
  goes_on = 0;
  int status = 0;
  if (waitpid(sharer, &status, 0) != sharer) abort();
  victim_print("status", (uint64_t)status);
}

const struct VictimCommand victim_commands[] = {
    {"share", start}, {"turn", turn}, {"unshare", stop}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    VICTIM_COUNT(shared_work);
    digest = victim_mix(digest, shared_work(round));
  }
  return digest;
}
