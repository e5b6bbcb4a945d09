// SPDX-License-Identifier: Apache-2.0
// Victim `hardened`: takes rights away from itself and from others on command.
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(hard_work);

// linux/prctl.h has them since Linux 6.3.
enum { kSetMdwe = 65, kRefuseExecGain = 1 };

VICTIM_FUNCTION uint64_t hard_work(uint64_t x) {
  VICTIM_COUNT(hard_work);
  return victim_mix(x, 13);
}

// From now on nothing becomes executable that was not mapped so.
static void deny_execution(uint64_t unused) {
  (void)unused;
  victim_print("denied", prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0) == 0);
}

static void deny_dumps(uint64_t unused) {
  (void)unused;
  victim_print("denied", prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
}

// Only read, write, exit and sigreturn are allowed from now on.
static void deny_calls(uint64_t unused) {
  (void)unused;
  victim_print("denied", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0);
}

static void print_users(uint64_t unused) {
  (void)unused;
  victim_print("real", getuid());
  victim_print("effective", geteuid());
}

const struct VictimCommand victim_commands[] = {{"deny_execution", deny_execution},
                                                {"deny_dumps", deny_dumps},
                                                {"deny_calls", deny_calls},
                                                {"users", print_users},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = hard_work(digest);
  return digest;
}
