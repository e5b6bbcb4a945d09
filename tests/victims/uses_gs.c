// SPDX-License-Identifier: Apache-2.0
// Victim `uses_gs`: a program that has its own use for the gs segment, as some language engines do.
#include <asm/prctl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(read_gs);
VICTIM_COUNTER(plain);

static uint64_t block[8] = {0, 42};

VICTIM_FUNCTION uint64_t read_gs(uint64_t x) {
  VICTIM_COUNT(read_gs);
  uint64_t word = 0;
  __asm__ volatile("mov %%gs:8, %0" : "=r"(word));
  return word + x;
}

static void use_gs(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, block) == 0);
}

// The same, with so much memory behind it that whatever is read at a 32-bit distance is there.
static void use_wide_gs(uint64_t unused) {
  (void)unused;
  uint64_t* const wide = mmap(0, (size_t)4 << 30, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  VICTIM_CHECK(wide != MAP_FAILED);
  wide[1] = 42;
  VICTIM_CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, wide) == 0);
}

VICTIM_FUNCTION uint64_t plain(uint64_t x) {
  VICTIM_COUNT(plain);
  return x * 3;
}

static void call_plain(uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i)
    sum += plain(i);
  victim_print("sum", sum);
}

// As a thread that was made without a thread pointer.
static void without_fs(uint64_t unused) {
  (void)unused;
  uint64_t fs = 0;
  VICTIM_CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs) == 0);
  const long dropped = syscall(SYS_arch_prctl, ARCH_SET_FS, 0);
  const uint64_t result = plain(14);
  syscall(SYS_arch_prctl, ARCH_SET_FS, fs);
  VICTIM_CHECK(dropped == 0);
  victim_print("result", result);
}

// From here on, rdtsc is a signal.
static void forbid_time(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
}

const struct VictimCommand victim_commands[] = {
    {"use_gs", use_gs},         {"use_wide_gs", use_wide_gs}, {"plain", call_plain},
    {"without_fs", without_fs}, {"forbid_time", forbid_time}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t value = read_gs(round);
    VICTIM_CHECK(value == 42 + round);
    digest = victim_mix(digest, value);
  }
  return digest;
}
