// SPDX-License-Identifier: Apache-2.0
// Victim `calls`: makes system calls of which it knows number, arguments, results and time.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(take_parent);
VICTIM_COUNTER(reads);
VICTIM_COUNTER(bytes);
VICTIM_COUNTER(failures);
VICTIM_COUNTER(renames);
VICTIM_COUNTER(opens);

enum { kSizes = 50, kNames = 4, kNapNs = 1000 * 1000 };

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int zeros(void) {
  static int file = -1;
  if (file < 0) file = open("/dev/zero", O_RDONLY);
  VICTIM_CHECK(file > 2);
  return file;
}

VICTIM_FUNCTION uint64_t take_parent(uint64_t round) {
  VICTIM_COUNT(take_parent);
  return (uint64_t)getppid() + round;
}

static void read_some(uint64_t round) {
  char bytes[kSizes];
  const ssize_t size = read(zeros(), bytes, round % kSizes);
  VICTIM_CHECK(size == (ssize_t)(round % kSizes));
  VICTIM_COUNT(reads);
  __atomic_fetch_add(&victim_counter_bytes.value, (uint64_t)size, __ATOMIC_RELAXED);
}

static void fail_once(void) {
  VICTIM_CHECK(fchdir(-1) != 0 && errno == EBADF);
  VICTIM_COUNT(failures);
}

static void parents(uint64_t count) {
  uint64_t digest = 0;
  for (uint64_t i = 0; i < count; ++i)
    digest = victim_mix(digest, take_parent(i));
  victim_print("done", count);
}

// Naps of a millisecond, timed from outside the call.
static void naps(uint64_t count) {
  uint64_t sum = 0;
  uint64_t most = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const struct timespec moment = {0, kNapNs};
    const uint64_t before = now_ns(CLOCK_MONOTONIC);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, 0);
    const uint64_t took = now_ns(CLOCK_MONOTONIC) - before;
    sum += took;
    if (took > most) most = took;
  }
  victim_print("sum", sum);
  victim_print("most", most);
}

static void renames(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    char name[16];
    snprintf(name, sizeof name, "name %d", (int)(i % kNames));
    VICTIM_CHECK(prctl(PR_SET_NAME, name) == 0);
    VICTIM_COUNT(renames);
  }
  prctl(PR_SET_NAME, "calls");
  victim_print("done", count);
}

static void opens(uint64_t count) {
  char path[] = "/dev/null";  // On the stack: in memory when the kernel looks.
  for (uint64_t i = 0; i < count; ++i) {
    const int file = open(path, O_WRONLY);
    VICTIM_CHECK(file >= 0 && close(file) == 0);
    VICTIM_COUNT(opens);
  }
  victim_print("done", count);
}

// Computes for so many milliseconds of processor time.
static void spin(uint64_t milliseconds) {
  const uint64_t begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  volatile uint64_t digest = 0;
  while (now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin < milliseconds * 1000000u) {
    for (int i = 0; i < 100000; ++i)
      digest = victim_mix(digest, (uint64_t)i);
  }
  victim_print("cpu_ns", now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin);
}

static void file(uint64_t unused) {
  (void)unused;
  victim_print("file", (uint64_t)zeros());
}

const struct VictimCommand victim_commands[] = {{"parents", parents},
                                                {"naps", naps},
                                                {"renames", renames},
                                                {"opens", opens},
                                                {"spin", spin},
                                                {"file", file},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    digest = victim_mix(digest, take_parent(round) - (uint64_t)getppid());
    read_some(round);
    if (round % 3 == 0) fail_once();
  }
  return digest;
}
