// SPDX-License-Identifier: Apache-2.0
// Brings itself into a state in which nobody can record it, and works there. The first argument
// says which:
//
//     filtered      a filter of system calls kills it for all but those that it makes itself
//     strict        the kernel allows it read, write and exit
//     gs            it has the gs segment for itself
//     namespace     it is the first process of a pid name space of its own
//
// With others behind it, it executes these instead (`filtered`: nothing is killed but whoever calls
// memfd_create()). Else it writes its pid, of the name space that it was started in, or 0 where it
// may not make another one. It answers each line with 1 if what it computes is as it should be,
// until the line "end"; "quit" sends it SIGQUIT before, and "fault" makes it store to nowhere.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))
#define ALLOW(number) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL(number)                                   \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

enum { kRounds = 2000, kOwn = 42 };
static uint64_t block[2] = {0, kOwn};
static uint64_t expected;
static int has_gs;
static int* volatile nowhere;

KEPT static uint64_t odd(uint64_t value) {
  return value * 3 + 1;
}

KEPT static uint64_t even(uint64_t value, uint64_t turn) {
  return value >> 1 ^ turn << 20;
}

KEPT static uint64_t compute(void) {
  uint64_t value = 7;
  for (uint64_t i = 0; i < kRounds; ++i)
    value = value & 1 ? odd(value) : even(value, i);
  return value;
}

KEPT static int is_right(void) {
  uint64_t word = kOwn;
  if (has_gs) __asm__ volatile("mov %%gs:8, %0" : "=r"(word));
  return compute() == expected && word == kOwn;
}

static int filter_calls(struct sock_filter* filter, size_t size) {
  const struct sock_fprog program = {(unsigned short)(size / sizeof *filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int allow_own_calls(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(SYS_read),
      ALLOW(SYS_write),
      ALLOW(SYS_exit),
      ALLOW(SYS_restart_syscall),
      ALLOW(SYS_rt_sigreturn),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  return filter_calls(filter, sizeof filter);
}

static int forbid_memory_files(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), KILL(SYS_memfd_create),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return filter_calls(filter, sizeof filter);
}

// Not stdio: it makes calls of its own.
static void say(const char* text) {
  if (write(1, text, strlen(text)) < 0) syscall(SYS_exit, 6);
}

static void say_pid(pid_t pid) {
  char text[32];
  snprintf(text, sizeof text, "%d\n", (int)pid);
  say(text);
}

static int next_line(char* line, size_t size) {
  for (size_t i = 0; i < size && read(0, line + i, 1) == 1; ++i) {
    if (line[i] != '\n') continue;
    line[i] = 0;
    return 1;
  }
  return 0;
}

// Here the status is the child's, and so is all that is told.
static void enter_namespace(void) {
  if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
    say_pid(0);
    exit(0);
  }
  const pid_t child = fork();
  if (child == 0) return;
  say_pid(child);
  int status = 0;
  close(0);
  waitpid(child, &status, 0);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int put_into(const char* state, int executes) {
  if (strcmp(state, "namespace") == 0) {
    enter_namespace();
    return 0;
  }
  if (!executes) say_pid(getpid());
  if (strcmp(state, "filtered") == 0) return executes ? forbid_memory_files() : allow_own_calls();
  if (strcmp(state, "strict") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  has_gs = strcmp(state, "gs") == 0;
  return has_gs ? (int)syscall(SYS_arch_prctl, ARCH_SET_GS, block) : -1;
}

int main(int count, char** words) {
  char line[16];
  expected = compute();
  if (count < 2 || put_into(words[1], count > 2) != 0) return 2;
  if (count > 2) {
    execv(words[2], words + 2);
    return 3;
  }
  int wrong = 0;
  while (next_line(line, sizeof line) && strcmp(line, "end") != 0) {
    if (strcmp(line, "fault") == 0) *nowhere = 1;  // LAST: barred
    if (strcmp(line, "quit") == 0) kill(getpid(), SIGQUIT);
    wrong += !is_right();
    say(wrong == 0 ? "1\n" : "0\n");
  }
  say(wrong == 0 ? "0 wrong\n" : "some wrong\n");
  syscall(SYS_exit, wrong == 0 ? 9 : 4);
}
