// SPDX-License-Identifier: Apache-2.0
// Victim `walled`: has a second thread, which works when it is told to, makes others, and forbids
// all of them arch_prctl(2) on command: the call is the process's death.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(walled_work);

VICTIM_FUNCTION uint64_t walled_work(uint64_t x) {
  VICTIM_COUNT(walled_work);
  return victim_mix(x, 17);
}

static pthread_barrier_t helper_turn;
static uint64_t helper_rounds;
static uint64_t helper_gs;

static uint64_t own_gs(void) {
  uint64_t base = 0;
  (void)syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
  return base;
}

static void* help(void* unused) {
  while (1) {
    pthread_barrier_wait(&helper_turn);
    if (helper_rounds == 0) helper_gs = own_gs();
    uint64_t digest = 0;
    for (uint64_t i = 0; i < helper_rounds; ++i)
      digest = walled_work(digest);
    pthread_barrier_wait(&helper_turn);
  }
  return unused;
}

static void let_help(uint64_t rounds) {
  helper_rounds = rounds;
  pthread_barrier_wait(&helper_turn);
  pthread_barrier_wait(&helper_turn);
}

static void help_command(uint64_t rounds) {
  let_help(rounds);
  victim_print("helped", rounds);
}

// Of both threads.
static void print_gs(uint64_t unused) {
  (void)unused;
  let_help(0);
  victim_print("own", own_gs());
  victim_print("helper", helper_gs);
}

static void* work_once(void* unused) {
  (void)walled_work(1);
  return unused;
}

static void make_threads(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    pthread_t thread;
    VICTIM_CHECK(pthread_create(&thread, 0, work_once, 0) == 0);
    VICTIM_CHECK(pthread_join(thread, 0) == 0);
  }
  victim_print("made", count);
}

static void lock(uint64_t unused) {
  (void)unused;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  VICTIM_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  VICTIM_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
               0);
  victim_print("locked", 1);
}

const struct VictimCommand victim_commands[] = {
    {"help", help_command}, {"gs", print_gs}, {"threads", make_threads}, {"lock", lock}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = walled_work(digest);
  return digest;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  VICTIM_CHECK(pthread_barrier_init(&helper_turn, 0, 2) == 0);
  VICTIM_CHECK(pthread_create(&thread, 0, help, 0) == 0);
}
