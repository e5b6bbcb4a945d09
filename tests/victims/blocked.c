// SPDX-License-Identifier: Apache-2.0
// Victim `blocked`: threads that wait in system calls while they are attached to and let go. None
// may return early, fail, or see EINTR; the timed one ends when it would have ended.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(blocking_read);
VICTIM_COUNTER(work);

enum { kWaitersMax = 8 };

static int futex_word;
static int poll_event, epoll_event, read_pipe[2], ring_fd = -1;
static pthread_t waiters[kWaitersMax];
static int waiter_count;
static uint64_t returned_early;  // One bit per waiter, in the order of their starts below.
static int woken;
static long slept_ns;

VICTIM_FUNCTION uint64_t work(uint64_t x) {
  VICTIM_COUNT(work);
  return x * x + 1;
}

// The traced function that blocks: entered before a detach, left after it.
VICTIM_FUNCTION long blocking_read(int fd) {
  VICTIM_COUNT(blocking_read);
  char byte = 0;
  const long got = read(fd, &byte, 1);
  return got * 1000 + byte;
}

// What each waiter reports: its call must come back only after `wake`, and with success.
static void came_back(int waiter, int right) {
  if (!right || !__atomic_load_n(&woken, __ATOMIC_SEQ_CST)) {
    __atomic_fetch_or(&returned_early, (uint64_t)1 << waiter, __ATOMIC_SEQ_CST);
  }
}

static void* wait_futex(void* unused) {
  const long status = syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  // EAGAIN: the kernel began the wait anew after an interruption, and the word had changed already.
  came_back(0, status == 0 || errno == EAGAIN);
  return unused;
}

static void* wait_epoll(void* unused) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(set, EPOLL_CTL_ADD, epoll_event, &event);
  came_back(1, epoll_wait(set, &event, 1, -1) == 1);
  close(set);
  return unused;
}

static void* wait_poll(void* unused) {
  struct pollfd one = {.fd = poll_event, .events = POLLIN};
  came_back(2, poll(&one, 1, -1) == 1);
  return unused;
}

static void* wait_read(void* unused) {
  came_back(3, blocking_read(read_pipe[0]) == 1000 + 'x');
  return unused;
}

// One request is in the ring (a poll on an eventfd); the second call waits for its completion.
static void* wait_ring(void* unused) {
  VICTIM_CHECK(syscall(SYS_io_uring_enter, ring_fd, 1, 0, 0, NULL, 0) == 1);
  came_back(5, syscall(SYS_io_uring_enter, ring_fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 0);
  return unused;
}

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

// Times itself; the test compares.
static void* wait_nanosleep(void* unused) {
  const struct timespec duration = {.tv_sec = 2, .tv_nsec = 0};
  const long start = now_ns();
  const int status = nanosleep(&duration, NULL);
  slept_ns = now_ns() - start;
  if (status != 0) __atomic_fetch_or(&returned_early, (uint64_t)1 << 4, __ATOMIC_SEQ_CST);
  return unused;
}

static void start_waiter(void* (*wait)(void*)) {
  VICTIM_CHECK(waiter_count < kWaitersMax);
  VICTIM_CHECK(pthread_create(&waiters[waiter_count++], NULL, wait, NULL) == 0);
}

// The kernel maps the ring's arrays; only the submission side is needed.
static int set_up_ring(int event) {
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof parameters);
  const int fd = (int)syscall(SYS_io_uring_setup, 4, &parameters);
  if (fd < 0) return -1;  // Switched off on this machine.
  const size_t ring_size = parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t);
  char* ring = mmap(NULL, ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
  struct io_uring_sqe* entries = mmap(NULL, parameters.sq_entries * sizeof *entries,
                                      PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
  memset(&entries[0], 0, sizeof entries[0]);
  entries[0].opcode = IORING_OP_POLL_ADD;
  entries[0].fd = event;
  entries[0].poll32_events = POLLIN;
  ((uint32_t*)(ring + parameters.sq_off.array))[0] = 0;
  __atomic_store_n((uint32_t*)(ring + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
  return fd;
}

// State of every thread but the first is 'S' and it is inside its call: /proc says so.
static int all_asleep(void) {
  char path[64], state[64];
  int asleep = 0;
  for (int i = 0; i < waiter_count; ++i) {
    pid_t tid = 0;
    // The tid is at a fixed place of glibc's descriptor; ask the clock id instead, which has it.
    clockid_t clock = 0;
    if (pthread_getcpuclockid(waiters[i], &clock) != 0) return 0;
    tid = (pid_t) ~(clock >> 3);
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE* file = fopen(path, "re");
    if (!file) return 0;
    asleep += fgets(state, sizeof state, file) && strncmp(state, "running", 7) != 0;
    fclose(file);
  }
  return asleep == waiter_count;
}

static void block(uint64_t unused) {
  (void)unused;
  woken = 0;
  waiter_count = 0;
  futex_word = 0;
  poll_event = eventfd(0, EFD_CLOEXEC);
  epoll_event = eventfd(0, EFD_CLOEXEC);
  VICTIM_CHECK(pipe(read_pipe) == 0);
  ring_fd = set_up_ring(poll_event);
  start_waiter(wait_futex);
  start_waiter(wait_epoll);
  start_waiter(wait_poll);
  start_waiter(wait_read);
  start_waiter(wait_nanosleep);
  if (ring_fd >= 0) start_waiter(wait_ring);
  while (!all_asleep()) {
  }
}

static void write_event(int event) {
  const uint64_t one = 1;
  VICTIM_CHECK(write(event, &one, sizeof one) == sizeof one);
}

static void wake(uint64_t unused) {
  (void)unused;
  victim_print("returned_early", returned_early);
  __atomic_store_n(&woken, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
  write_event(poll_event);
  write_event(epoll_event);
  VICTIM_CHECK(write(read_pipe[1], "x", 1) == 1);
  for (int i = 0; i < waiter_count; ++i)
    pthread_join(waiters[i], NULL);
  victim_print("failed", returned_early);
  victim_print("slept_ns", (uint64_t)slept_ns);
  victim_print("ring", ring_fd >= 0);
}

const struct VictimCommand victim_commands[] = {{"block", block}, {"wake", wake}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, work(round));
  return digest;
}
