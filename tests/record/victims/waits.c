// SPDX-License-Identifier: Apache-2.0
// Threads that wait, each in a way of its own, until a line comes on standard input. The first
// argument names what they do; see main.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_have_said;
static pthread_barrier_t both_have_one;
static _Atomic(uint32_t) word;
static _Atomic(int) handled;
static _Atomic(int) is_over;
static _Atomic(uint64_t) turns;
static int event;
static int ends[2];  // Of a pipe.

static void say(const char* name) {
  printf("%s %ld\n", name, syscall(SYS_gettid));
  fflush(stdout);
}

static void until_a_line_comes(void) {
  char text[16];
  puts("ready");
  fflush(stdout);
  if (fgets(text, sizeof text, stdin) == NULL) exit(4);
}

KEPT static void take_both(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  pthread_barrier_wait(&both_have_one);
  pthread_mutex_lock(second);  // LAST: deadlock
  ++turns;
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}

static void* book(void* argument) {
  say("books");
  pthread_barrier_wait(&all_have_said);
  take_both(&accounts, &journal);
  return argument;
}

static void* audit(void* argument) {
  say("audits");
  pthread_barrier_wait(&all_have_said);
  take_both(&journal, &accounts);
  return argument;
}

static int deadlock(void) {
  pthread_t threads[2];
  pthread_barrier_init(&all_have_said, NULL, 3);
  pthread_barrier_init(&both_have_one, NULL, 2);
  pthread_create(threads, NULL, book, NULL);
  pthread_create(threads + 1, NULL, audit, NULL);
  pthread_barrier_wait(&all_have_said);
  until_a_line_comes();
  return 9;
}

// What each call came back with, and how many handlers had run by then.
static void tell(const char* name, long result) {
  printf("%s %ld %d %d\n", name, result, result < 0 ? errno : 0, atomic_load(&handled));
  fflush(stdout);
}

static void* sleeps(void* argument) {
  const struct timespec long_time = {3600, 0};
  tell("nanosleep", nanosleep(&long_time, NULL));
  return argument;
}

static void* on_futex(void* argument) {
  tell("futex", syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0));
  return argument;
}

static void* on_epoll(void* timeout) {
  struct epoll_event wanted = {.events = EPOLLIN}, found;
  const int all = epoll_create1(0);
  epoll_ctl(all, EPOLL_CTL_ADD, event, &wanted);
  tell("epoll_wait", epoll_wait(all, &found, 1, (int)(intptr_t)timeout));
  return timeout;
}

static void* on_poll(void* argument) {
  struct pollfd wanted = {event, POLLIN, 0};
  tell("poll", poll(&wanted, 1, -1));
  return argument;
}

static void* reads(void* pipe_end) {
  char byte;
  tell("read", read((int)(intptr_t)pipe_end, &byte, 1));
  return pipe_end;
}

static void* waits_for_signal(void* argument) {
  sigset_t wanted;
  const struct timespec long_time = {3600, 0};
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR2);
  tell("sigtimedwait", sigtimedwait(&wanted, NULL, &long_time) == SIGUSR2);
  return argument;
}

static void on_signal(int number) {
  (void)number;
  ++handled;
}

// While others wait. What was loaded is gone at the end.
static int load(const char* library) {
  for (int i = 0; i < 5; ++i) {
    void* const loaded = dlopen(library, RTLD_NOW);
    if (loaded == NULL || dlclose(loaded) != 0) return puts(dlerror());
  }
  return 0;
}

// The word stays as it is: a thread that was stopped and begins its wait once more finds it so,
// also where it gets the processor late.
static void wake_and_join(pthread_t on_word) {
  while (syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0) {
    if (pthread_tryjoin_np(on_word, NULL) == 0) return;
    sched_yield();
  }
  pthread_join(on_word, NULL);
}

// One by one, each by what it waits for; nanosleep by a handler.
static int calls(const char* library) {
  pthread_t all[7];
  sigset_t blocked;
  signal(SIGUSR1, on_signal);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  event = eventfd(0, 0);
  if (pipe(ends) != 0) return 4;
  pthread_create(all, NULL, sleeps, NULL);
  pthread_create(all + 1, NULL, on_futex, NULL);
  pthread_create(all + 2, NULL, on_epoll, (void*)(intptr_t)-1);
  pthread_create(all + 3, NULL, on_epoll, (void*)(intptr_t)3600000);
  pthread_create(all + 4, NULL, on_poll, NULL);
  pthread_create(all + 5, NULL, reads, (void*)(intptr_t)ends[0]);
  pthread_create(all + 6, NULL, waits_for_signal, NULL);
  until_a_line_comes();
  if (library != NULL && load(library) != 0) return 4;
  wake_and_join(all[1]);
  const uint64_t one = 1;
  if (write(event, &one, sizeof one) < 0 || write(ends[1], "x", 1) < 0) return 4;
  for (int i = 2; i <= 5; ++i)
    pthread_join(all[i], NULL);
  pthread_kill(all[6], SIGUSR2);
  pthread_join(all[6], NULL);
  pthread_kill(all[0], SIGUSR1);
  pthread_join(all[0], NULL);
  return 9;
}

KEPT static uint64_t mix(uint64_t value) {
  return value % 3 == 0 ? value * 31 : value ^ value >> 7;
}

static void* computes(void* argument) {
  uint64_t value = 1;
  while (!atomic_load(&is_over))
    value = mix(value) + 1;
  turns += value & 1;
  return argument;
}

static void* waits_on_futex(void* argument) {
  while (!atomic_load(&is_over))
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
  return argument;
}

static int many(int computing, int waiting) {
  pthread_t all[400];
  if (computing + waiting > 400) return 2;
  for (int i = 0; i < computing + waiting; ++i)
    pthread_create(all + i, NULL, i < computing ? computes : waits_on_futex, NULL);
  until_a_line_comes();
  atomic_store(&is_over, 1);
  atomic_store(&word, 1);
  syscall(SYS_futex, &word, FUTEX_WAKE, 400, NULL, NULL, 0);
  for (int i = 0; i < computing + waiting; ++i)
    pthread_join(all[i], NULL);
  return 9;
}

// The parent cannot be stopped while the child has its memory.
static int in_vfork(void) {
  char byte;
  puts("ready");
  fflush(stdout);
  const pid_t child = vfork();
  if (child == 0) _exit(read(0, &byte, 1) == 1 ? 9 : 4);
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

static void* in_vfork_beside(void* argument) {
  char byte;
  const pid_t child = vfork();
  if (child == 0) _exit(read(ends[0], &byte, 1) == 1 ? 9 : 4);
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 9 ? argument : NULL;
}

// Another thread cannot be stopped meanwhile.
static int load_beside_vfork(const char* library) {
  pthread_t thread;
  void* returned = NULL;
  if (pipe(ends) != 0) return 4;
  pthread_create(&thread, NULL, in_vfork_beside, ends);
  until_a_line_comes();
  if (load(library) != 0 || write(ends[1], "x", 1) != 1) return 4;
  pthread_join(thread, &returned);
  return returned == ends ? 9 : 5;
}

// A callback's entry comes from outside: the child has a lobe of its own from there on.
static int compare(const void* one, const void* other) {
  say("child");
  until_a_line_comes();
  return (int)(mix(*(const uint64_t*)one) & 7) - (int)(mix(*(const uint64_t*)other) & 7);
}

static int in_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    uint64_t pair[2] = {3, 2};
    qsort(pair, 2, sizeof *pair, compare);
    _exit((int)(mix(8) & 7));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status) == (int)(mix(8) & 7) ? 9 : 4;
}

int main(int count, char** words) {
  const char* const way = count > 1 ? words[1] : "";
  if (strcmp(way, "deadlock") == 0) return deadlock();
  if (strcmp(way, "calls") == 0) return calls(words[2]);
  if (strcmp(way, "many") == 0) return many(atoi(words[2]), atoi(words[3]));
  if (strcmp(way, "vfork") == 0) return in_vfork();
  if (strcmp(way, "load_beside_vfork") == 0) return load_beside_vfork(words[2]);
  if (strcmp(way, "child") == 0) return in_child();
  return 2;
}
