// SPDX-License-Identifier: Apache-2.0
// Victim `sandbox`: on the command `lock` it allows itself no call of gettid and none that reads
// memory through the kernel any more: either is its death. With the argument `now` it does so at
// once, runs 100 rounds and ends.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(sandbox_work);

VICTIM_FUNCTION uint64_t sandbox_work(uint64_t x) {
  VICTIM_COUNT(sandbox_work);
  return victim_mix(x, 11);
}

static void lock(uint64_t unused) {
  (void)unused;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  VICTIM_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  VICTIM_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void lock_command(uint64_t unused) {
  lock(unused);
  victim_print("locked", 1);
}

const struct VictimCommand victim_commands[] = {{"lock", lock_command}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = sandbox_work(digest);
  return digest;
}

// Before main(), which knows no arguments.
__attribute__((constructor)) static void run_now(int argc, char** argv) {
  if (argc < 2 || strcmp(argv[1], "now") != 0) return;
  lock(0);
  fprintf(stderr, "%llu\n", (unsigned long long)victim_run(100));
  _exit(0);
}
