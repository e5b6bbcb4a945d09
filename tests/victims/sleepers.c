// SPDX-License-Identifier: Apache-2.0
// Victim `sleepers`: threads that each wait in another system call with a time limit, under filters
// that kill for the call by which the kernel goes on with such a wait (restart_syscall).
//
//     filter N          main's thread takes a filter, and so do the threads that it makes
//     filter_threads N  only the threads that are made from now on take it
//     sleep MS          makes the threads; returns when all wait
//     wake              joins them: prints 1 for each wait that ended rightly and not early
//     forbid_pause      a thread waits in pause(2); then a filter comes that kills for pause
//     unpause           joins it: prints the errno that pause ended with
//     cell              a thread waits in pause(2) for ever, under a filter that kills for all else
//
// N of a filter: 0 = kills for nothing, 1 = kills for restart_syscall, 2 = such a one, and a newer
// one that kills for nothing.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(sleepers_work);

enum { kAllows, kForbidsRestart, kTwoFilters, kSleepers = 9 };

static uint64_t filter_of_threads;
static uint64_t sleep_ms;
static int futex_word;
static int threads_begun[kSleepers];  // Their tids.
static pthread_t threads[kSleepers], pauser;
static int pause_errno, pauser_begun;

VICTIM_FUNCTION uint64_t sleepers_work(uint64_t x) {
  VICTIM_COUNT(sleepers_work);
  return victim_mix(x, 5);
}

static void install(struct sock_filter* filter, size_t size, unsigned flags) {
  const struct sock_fprog program = {.len = (unsigned short)size, .filter = filter};
  VICTIM_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  VICTIM_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0);
}

static void take_filter(uint64_t which) {
  enum { kRestartOf32Bit = 0 };
  struct sock_filter allows[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_filter forbids[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 2, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kRestartOf32Bit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  if (which != kAllows) install(forbids, sizeof forbids / sizeof *forbids, 0);
  if (which != kForbidsRestart) install(allows, 1, 0);
}

static struct timespec limit(void) {
  return (struct timespec){.tv_sec = (time_t)(sleep_ms / 1000),
                           .tv_nsec = (long)(sleep_ms % 1000) * 1000000};
}

static int sleep_by_nanosleep(void) {
  const struct timespec time = limit();
  struct timespec rest = {0};
  return syscall(SYS_nanosleep, &time, &rest) == 0;
}

static int sleep_by_clock(void) {
  const struct timespec time = limit();
  return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL) == 0;
}

static int sleep_until(void) {
  struct timespec end = {0};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += limit().tv_sec + 1;
  return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == 0;
}

static int sleep_by_poll(void) {
  return syscall(SYS_poll, NULL, 0, (int)sleep_ms) == 0;
}

static int sleep_by_select(void) {
  struct timeval time = {.tv_sec = (time_t)(sleep_ms / 1000),
                         .tv_usec = (long)(sleep_ms % 1000) * 1000};
  return syscall(SYS_select, 0, NULL, NULL, NULL, &time) == 0;
}

static int sleep_by_futex(void) {
  const struct timespec time = limit();
  return syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, &time, NULL, 0) == -1 && errno == ETIMEDOUT;
}

static int sleep_by_futex_until(void) {
  struct timespec end = {0};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += limit().tv_sec + 1;
  return syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET, 0, &end, NULL,
                 FUTEX_BITSET_MATCH_ANY) == -1 &&
         errno == ETIMEDOUT;
}

static int sleep_by_epoll(void) {
  struct epoll_event event;
  const int fd = epoll_create1(0);
  const int result = epoll_wait(fd, &event, 1, (int)sleep_ms);
  close(fd);
  return result == 0;
}

static size_t sleepers = kSleepers;

// Some kernels have no gate for 32-bit programs: who goes there is ended.
__attribute__((constructor)) static void look_for_gate(void) {
  enum { kGetpidOf32Bit = 20 };
  const pid_t child = fork();
  if (child == 0) {
    int result = kGetpidOf32Bit;
    __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
    _exit(0);
  }
  int status = 0;
  VICTIM_CHECK(child > 0 && waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status)) --sleepers;  // The last one.
}

// By the gate of 32-bit programs, whose time stands in the lowest 4 GiB.
static int sleep_as_32_bit(void) {
  enum { kNanosleepOf32Bit = 162 };
  int* const time =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  VICTIM_CHECK(time != MAP_FAILED);
  time[0] = (int)(sleep_ms / 1000);
  time[1] = (int)(sleep_ms % 1000) * 1000000;
  int result = kNanosleepOf32Bit;
  __asm__ volatile("int $0x80"
                   : "+a"(result)
                   : "b"(time), "c"(0)
                   : "r8", "r9", "r10", "r11", "memory");
  munmap(time, 4096);
  return result == 0;
}

static const struct {
  const char* name;
  int (*wait)(void);
} kinds[kSleepers] = {{"nanosleep", sleep_by_nanosleep},
                      {"clock_nanosleep", sleep_by_clock},
                      {"clock_nanosleep_until", sleep_until},
                      {"poll", sleep_by_poll},
                      {"select", sleep_by_select},
                      {"futex", sleep_by_futex},
                      {"futex_until", sleep_by_futex_until},
                      {"epoll_wait", sleep_by_epoll},
                      {"nanosleep_32", sleep_as_32_bit}};

static void* sleeper(void* argument) {
  const size_t i = (size_t)argument;
  if (filter_of_threads != kAllows) take_filter(filter_of_threads);
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  __atomic_store_n(&threads_begun[i], gettid(), __ATOMIC_RELEASE);
  const int right = kinds[i].wait();
  clock_gettime(CLOCK_MONOTONIC, &end);
  const int64_t passed_ms =
      (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
  return (void*)(size_t)(right && passed_ms >= (int64_t)sleep_ms);
}

static void wait_until_asleep(const int* tid) {
  char path[64], line[8] = "";
  do {
    while (__atomic_load_n(tid, __ATOMIC_ACQUIRE) == 0) {
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", *tid);
    FILE* file = fopen(path, "re");
    VICTIM_CHECK(file && fgets(line, sizeof line, file));
    if (file) fclose(file);
  } while (strncmp(line, "running", 7) == 0);
}

static void filter_command(uint64_t which) {
  take_filter(which);
}

static void filter_threads(uint64_t which) {
  filter_of_threads = which;
}

static void sleep_command(uint64_t milliseconds) {
  sleep_ms = milliseconds;
  for (size_t i = 0; i < sleepers; ++i) {
    __atomic_store_n(&threads_begun[i], 0, __ATOMIC_RELAXED);
    VICTIM_CHECK(pthread_create(&threads[i], NULL, sleeper, (void*)i) == 0);
  }
  for (size_t i = 0; i < sleepers; ++i)
    wait_until_asleep(&threads_begun[i]);
  for (size_t i = 0; i < sleepers; ++i)
    victim_print(kinds[i].name, (uint64_t)threads_begun[i]);
}

static void wake_command(uint64_t unused) {
  (void)unused;
  for (size_t i = 0; i < sleepers; ++i) {
    void* right = NULL;
    pthread_join(threads[i], &right);
    victim_print(kinds[i].name, (uint64_t)right);
  }
}

static void* pause_once(void* unused) {
  __atomic_store_n(&pauser_begun, gettid(), __ATOMIC_RELEASE);
  pause_errno = syscall(SYS_pause) == -1 ? errno : 0;
  return unused;
}

static void forbid_pause(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(pthread_create(&pauser, NULL, pause_once, NULL) == 0);
  wait_until_asleep(&pauser_begun);
  struct sock_filter forbids[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pause, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  install(forbids, sizeof forbids / sizeof *forbids, SECCOMP_FILTER_FLAG_TSYNC);
}

static void unpause(uint64_t unused) {
  (void)unused;
  pthread_join(pauser, NULL);
  victim_print("errno", (uint64_t)pause_errno);
}

static void* pause_for_ever(void* unused) {
  struct sock_filter allows_pause[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pause, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const int tid = gettid();
  install(allows_pause, sizeof allows_pause / sizeof *allows_pause, 0);
  __atomic_store_n(&pauser_begun, tid, __ATOMIC_RELEASE);
  for (;;)
    syscall(SYS_pause);
  return unused;
}

static void cell(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(pthread_create(&pauser, NULL, pause_for_ever, NULL) == 0);
  wait_until_asleep(&pauser_begun);
}

const struct VictimCommand victim_commands[] = {{"filter", filter_command},
                                                {"filter_threads", filter_threads},
                                                {"sleep", sleep_command},
                                                {"wake", wake_command},
                                                {"forbid_pause", forbid_pause},
                                                {"unpause", unpause},
                                                {"cell", cell},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = sleepers_work(digest);
  return digest;
}
