// SPDX-License-Identifier: Apache-2.0
// Victim `hazards`: what stops and starts can harm. A read with a time-out must not end early, and
// threads go on while vfork children run on their memory.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(work);
VICTIM_COUNTER(first_on_stack);

enum { kReceivers = 4, kSpinners = 4 };

static int pairs[kReceivers][2];
static pthread_t receivers[kReceivers];
static long results[kReceivers];
static int stop_spinning;
static pthread_t spinners[kSpinners], forker;

VICTIM_FUNCTION uint64_t work(uint64_t x) {
  VICTIM_COUNT(work);
  return x * x + 1;
}

static ssize_t splice_one(int from, char* byte) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const ssize_t got = splice(from, NULL, ends[1], NULL, 1, 0);
  const int error = errno;
  if (got == 1) VICTIM_CHECK(read(ends[0], byte, 1) == 1);
  close(ends[0]);
  close(ends[1]);
  errno = error;
  return got;
}

static void* receive(void* argument) {
  const long i = (long)argument;
  char byte = 0;
  const struct iovec room = {&byte, 1};
  ssize_t got = -1;
  if (i == 0) got = recv(pairs[i][0], &byte, 1, 0);
  if (i == 1) got = read(pairs[i][0], &byte, 1);
  if (i == 2) got = preadv2(pairs[i][0], &room, 1, -1, 0);
  if (i == 3) got = splice_one(pairs[i][0], &byte);
  results[i] = got == 1 ? byte : -errno;
  return NULL;
}

static int is_asleep(pthread_t thread) {
  clockid_t clock = 0;
  if (pthread_getcpuclockid(thread, &clock) != 0) return 0;
  char path[64], line[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (pid_t) ~(clock >> 3));
  FILE* file = fopen(path, "re");
  if (!file) return 0;
  const int asleep = fgets(line, sizeof line, file) && strncmp(line, "running", 7) != 0;
  fclose(file);
  return asleep;
}

static void receivers_start(uint64_t unused) {
  (void)unused;
  const struct timeval patience = {.tv_sec = 600};
  for (long i = 0; i < kReceivers; ++i) {
    VICTIM_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) == 0);
    setsockopt(pairs[i][0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    VICTIM_CHECK(pthread_create(&receivers[i], NULL, receive, (void*)i) == 0);
    while (!is_asleep(receivers[i])) {
    }
  }
}

static void receivers_wake(uint64_t unused) {
  (void)unused;
  uint64_t failed = 0;
  for (int i = 0; i < kReceivers; ++i) {
    VICTIM_CHECK(write(pairs[i][1], "x", 1) == 1);
    pthread_join(receivers[i], NULL);
    failed += results[i] != 'x';
  }
  victim_print("failed", failed);
}

static void* spin(void* unused) {
  uint64_t digest = 0;
  while (!__atomic_load_n(&stop_spinning, __ATOMIC_RELAXED))
    digest = work(digest);
  return unused;
}

static void* fork_again(void* unused) {
  while (!__atomic_load_n(&stop_spinning, __ATOMIC_RELAXED)) {
    const pid_t child = vfork();
    if (child == 0) {
      const struct timespec pause = {.tv_nsec = 50000000};
      syscall(SYS_nanosleep, &pause, NULL);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  return unused;
}

static void spin_start(uint64_t unused) {
  (void)unused;
  for (int i = 0; i < kSpinners; ++i)
    pthread_create(&spinners[i], NULL, spin, NULL);
  pthread_create(&forker, NULL, fork_again, NULL);
}

static void spin_stop(uint64_t unused) {
  (void)unused;
  __atomic_store_n(&stop_spinning, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < kSpinners; ++i)
    pthread_join(spinners[i], NULL);
  pthread_join(forker, NULL);
}

// The thread of the commands sleeps in the kernel until a line comes for its child.
static void vfork_that_waits(uint64_t unused) {
  (void)unused;
  char line[64];
  const pid_t child = vfork();
  if (child == 0) {
    while (syscall(SYS_read, STDIN_FILENO, line, 1) == 1 && line[0] != '\n') {
    }
    _exit(0);
  }
  VICTIM_CHECK(waitpid(child, NULL, 0) == child);
}

// Its return address is the last word of its stack.
VICTIM_FUNCTION int first_on_stack(void* unused) {
  VICTIM_COUNT(first_on_stack);
  (void)unused;
  return 0;
}

static void run_on_small_stacks(uint64_t count) {
  enum { kPage = 4096 };
  char* const stack =
      mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  VICTIM_CHECK(stack != MAP_FAILED && mprotect(stack + 3 * kPage, kPage, PROT_NONE) == 0);
  for (uint64_t i = 0; i < count; ++i) {
    int status = -1;
    const pid_t child = clone(first_on_stack, stack + 3 * kPage, CLONE_VM | SIGCHLD, NULL);
    VICTIM_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  munmap(stack, 4 * kPage);
}

const struct VictimCommand victim_commands[] = {{"receive", receivers_start},
                                                {"small_stacks", run_on_small_stacks},
                                                {"wake", receivers_wake},
                                                {"spin", spin_start},
                                                {"calm", spin_stop},
                                                {"vfork_that_waits", vfork_that_waits},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, work(round));
  return digest;
}
