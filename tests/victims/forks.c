// SPDX-License-Identifier: Apache-2.0
// Victim `forks`: a process of 16 threads that forks inside traced code, spawns and vforks in a
// storm, runs a set-user-id program, and clones a process that shares its memory.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(forks_inside);
VICTIM_COUNTER(traced_work);  // Calls in the parent; the children count in shared memory.

enum { kThreads = 16, kStackSize = 64 * 1024 };

extern char** environ;
static uint64_t* children_calls;  // Shared with every child.

VICTIM_FUNCTION uint64_t traced_work(uint64_t x) {
  __asm__ volatile("" : "+r"(x));
  return x * 11 + 3;
}

static uint64_t work_in_parent(uint64_t x) {
  VICTIM_COUNT(traced_work);
  return traced_work(x);
}

static uint64_t work_in_child(uint64_t x) {
  __atomic_fetch_add(children_calls, (uint64_t)1, __ATOMIC_SEQ_CST);
  return traced_work(x);
}

static int wait_status(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, __WALL) < 0) {
  }
  return status;
}

// The child runs traced code of its own and says with its status whether it was right.
VICTIM_FUNCTION uint64_t forks_inside(uint64_t x) {
  VICTIM_COUNT(forks_inside);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t errors = 0;
    for (uint64_t i = 0; i < 50; ++i)
      errors += work_in_child(i) != i * 11 + 3;
    _exit(errors == 0 ? 42 : 1);
  }
  const int status = wait_status(child);
  VICTIM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  return work_in_parent(x);
}

static void* thread_main(void* raw) {
  const uint64_t x = (uint64_t)raw;
  uint64_t digest = 0;
  for (uint64_t i = 0; i < 200; ++i)
    digest += work_in_parent(x + i);
  return (void*)(digest + forks_inside(x));
}

static void spawn(const char* path) {
  char* const arguments[] = {(char*)path, NULL};
  pid_t child = 0;
  VICTIM_CHECK(posix_spawn(&child, path, NULL, NULL, arguments, environ) == 0);
  const int status = wait_status(child);
  VICTIM_CHECK(WIFEXITED(status));
}

static void run_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  VICTIM_CHECK(wait_status(child) == 0);
}

static int clone_main(void* raw) {
  uint64_t* const out = raw;
  *out = traced_work(*out);
  return 0;
}

// Another process in this memory: it has another thread id, but the same thread pointer.
static uint64_t run_clone(uint64_t x) {
  char* stack = mmap(NULL, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  volatile uint64_t value = x;
  VICTIM_COUNT(traced_work);
  const pid_t child = clone(clone_main, stack + kStackSize, CLONE_VM | SIGCHLD, (void*)&value);
  VICTIM_CHECK(child > 0 && wait_status(child) == 0);
  munmap(stack, kStackSize);
  VICTIM_CHECK(value == x * 11 + 3);
  return value;
}

// A set-user-id program that ends at once, since there is no such group.
static void run_setuid(void) {
  if (access("/usr/bin/newgrp", X_OK) != 0) return;
  char* const arguments[] = {"newgrp", "no-such-group-of-clew", NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
  pid_t child = 0;
  VICTIM_CHECK(posix_spawn(&child, "/usr/bin/newgrp", &actions, NULL, arguments, environ) == 0);
  const int status = wait_status(child);
  VICTIM_CHECK(WIFEXITED(status));
  posix_spawn_file_actions_destroy(&actions);
}

static void share_counts(void) {
  if (children_calls) return;
  children_calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

// Calls traced code, and makes a child that does the same: the status of the deepest one.
static int run_link(uint64_t depth) {
  uint64_t errors = 0;
  for (uint64_t i = 0; i < 10; ++i)
    errors += work_in_child(i) != i * 11 + 3;
  if (errors != 0) return 1;
  if (depth <= 1) return 42;
  const pid_t child = fork();
  if (child == 0) _exit(run_link(depth - 1));
  const int status = wait_status(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void chain(uint64_t depth) {
  share_counts();
  const pid_t child = fork();
  if (child == 0) _exit(run_link(depth));
  const int status = wait_status(child);
  VICTIM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  victim_print("children_work", *children_calls);
}

static void children_counts(uint64_t unused) {
  (void)unused;
  victim_print("children_work", children_calls ? *children_calls : 0);
}

const struct VictimCommand victim_commands[] = {
    {"children", children_counts}, {"chain", chain}, {0}};

static uint64_t run_round(uint64_t round) {
  pthread_t threads[kThreads];
  uint64_t digest = 0;
  for (uint64_t i = 0; i < kThreads; ++i) {
    VICTIM_CHECK(pthread_create(&threads[i], NULL, thread_main, (void*)(round + i)) == 0);
  }
  for (int i = 0; i < kThreads; ++i) {
    void* value = NULL;
    pthread_join(threads[i], &value);
    digest = victim_mix(digest, (uint64_t)value);
  }
  for (int i = 0; i < 8; ++i) {
    spawn("/bin/true");
    run_vfork();
  }
  run_setuid();
  return victim_mix(digest, run_clone(round));
}

uint64_t victim_run(uint64_t rounds) {
  share_counts();
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, run_round(round));
  return digest;
}
