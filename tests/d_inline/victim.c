// SPDX-License-Identifier: Apache-2.0
// A program whose functions D scripts watch. Commands come one per line on stdin; each is answered
// with one line on stdout, the number of calls that the program has counted itself.
//
//   calls N        work() N times
//   threads T N    T threads, each work() N times; all are gone when it is answered
//   cross N        crossing() N times, each with one getppid(2) in it
//   tails N        passes_on() N times, which leaves by a jump to work()
//   offsets N      branches() N times
//   child N        a forked child calls work() N times; its calls are not counted
//   texts N        a vfork child calls read_text("child"), then we read_text("parent") N times
//   naps N         nap() N times, each of a millisecond at least
//   heirs N        N times a thread that ends inside of crossing(), and one that gets its memory
//                  and calls work()
//   load PATH      loads a library; "plug N" calls the plug() of the last one N times, "plugged N"
//                  its plugged()
//   unload         closes it
//   mark N         writes N into the semaphore of its probe `inline_plugin:::plugged`
//   marked         what is there
//   spin T         T threads call work() until "calm"
//   calm
//   many N         many() N times, with ten arguments: i, i + 1, … i + 9
//   semaphore      what the probe `inline_victim:::told` has as its semaphore
//   tell N         the static probe `told` N times, with (i, text, -i)
//   quit
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../victims/static_probe.h"

enum { kThreadsMax = 64 };

static atomic_long calls;
static atomic_int spinning;
static atomic_long spun;

__attribute__((noinline)) long work(long value) {
  __asm__ volatile("" : : : "memory");
  return value * 3 + 1;
}

__attribute__((noinline)) long crossing(long value) {
  syscall(SYS_getppid);
  return value + 1;
}

__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f, long g, long h,
                                    long i, long j) {
  __asm__ volatile("" : : "r"(b), "r"(c), "r"(d), "r"(e), "r"(f) : "memory");
  return a + g + h + i + j;
}

__attribute__((noinline)) long passes_on(long value) {
  return work(value + 1);
}

// With a comparison and its branch in the middle; branches(n) = n + 1, and 100 more from 10 on.
long branches(long value);
__asm__(
    ".text\n.globl branches\n.type branches, @function\nbranches:\n"
    "  mov %rdi, -8(%rsp)\n"
    "  cmp $10, %rdi\n"
    "  lea 1(%rdi), %rax\n"
    "  mov $100, %edi\n"
    "  jl 1f\n"
    "  add %rdi, %rax\n"
    "1: sub -8(%rsp), %rax\n"
    "  add -8(%rsp), %rax\n"
    "  ret\n"
    ".size branches, . - branches\n");

// Its first instruction changes its argument: low_half(n) = n % 2^32.
long low_half(long value);
__asm__(
    ".text\n.balign 16\n.globl low_half\n.type low_half, @function\nlow_half:\n"
    "  mov %edi, %edi\n"
    "  lea (%rdi), %rax\n"
    "  mov %rax, %rdx\n"
    "  ret\n"
    ".size low_half, . - low_half\n");

// The note of a static probe, as <sys/sdt.h> writes it, with a semaphore.
__attribute__((section(".probes"), used)) volatile unsigned short told_semaphore;

__attribute__((noinline)) void tell(long number, const char* text) {
  const long negative = -number;
  const int low = (int)number;
  __asm__ volatile(
      VICTIM_STATIC_PROBE("inline_victim", "told", "told_semaphore", "-8@%0 8@%1 -8@%2 -4@%3 4@$7")
      :
      : "r"(number), "r"(text), "m"(negative), "m"(low));
}

static void* call_work(void* argument) {
  const long count = (long)argument;
  for (long i = 0; i < count; ++i)
    work(i);
  atomic_fetch_add(&calls, count);
  return NULL;
}

static void run_threads(long threads, long count) {
  pthread_t handles[kThreadsMax];
  if (threads > kThreadsMax) threads = kThreadsMax;
  for (long i = 0; i < threads; ++i)
    pthread_create(&handles[i], NULL, call_work, (void*)count);
  for (long i = 0; i < threads; ++i)
    pthread_join(handles[i], NULL);
}

__attribute__((noinline)) const char* read_text(const char* text) {
  __asm__ volatile("" : "+r"(text));
  return text;
}

static void read_texts(long count) {
  const pid_t child = vfork();
  if (child == 0) {
    read_text("child");
    _exit(0);
  }
  waitpid(child, NULL, 0);
  for (long i = 0; i < count; ++i)
    read_text("parent");
}

static void run_child(long count) {
  const pid_t child = fork();
  if (child == 0) {
    for (long i = 0; i < count; ++i)
      work(i);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static pthread_t spinners[kThreadsMax];
static long spinner_count;

static void* spin(void* unused) {
  long count = 0;
  while (atomic_load(&spinning))
    count += work(count) != 0;
  atomic_fetch_add(&spun, count);
  return unused;
}

static void start_spinning(long threads) {
  atomic_store(&spinning, 1);
  spinner_count = threads > kThreadsMax ? kThreadsMax : threads;
  for (long i = 0; i < spinner_count; ++i)
    pthread_create(&spinners[i], NULL, spin, NULL);
}

static void stop_spinning(void) {
  atomic_store(&spinning, 0);
  for (long i = 0; i < spinner_count; ++i)
    pthread_join(spinners[i], NULL);
  atomic_fetch_add(&calls, atomic_exchange(&spun, 0));
}

__attribute__((noinline)) long nap(long value) {
  const struct timespec millisecond = {0, 1000000};
  nanosleep(&millisecond, NULL);
  return value;
}

static void* end_inside(void* unused) {
  crossing(1);
  return unused;
}

// The C library gives the memory of the thread that has ended to the next one.
static void run_heirs(long count) {
  for (long i = 0; i < count; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, end_inside, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, call_work, (void*)1);
    pthread_join(thread, NULL);
  }
}

static long (*plug)(long);
static long (*plugged)(long);
static volatile unsigned short* mark;

static void* library;

static void load(const char* path) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  *(void**)&plug = dlsym(library, "plug");
  *(void**)&plugged = dlsym(library, "plugged");
  mark = dlsym(library, "plugged_semaphore");
}

static void repeat(long (*function)(long), long count) {
  for (long i = 0; i < count; ++i)
    function(i);
  atomic_fetch_add(&calls, count);
}

// Not in main(), whose registers scripts print.
__attribute__((noinline)) static long answer_to(const char* word) {
  if (strcmp(word, "semaphore") == 0) return told_semaphore;
  if (strcmp(word, "marked") == 0) return *mark;
  return atomic_load(&calls);
}

int main(void) {
  char line[256];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != NULL) {
    long a = 0;
    long b = 0;
    char word[32] = "";
    if (sscanf(line, "%31s %ld %ld", word, &a, &b) < 1) continue;
    if (strcmp(word, "quit") == 0) break;
    if (strcmp(word, "calls") == 0) call_work((void*)a);
    if (strcmp(word, "threads") == 0) run_threads(a, b);
    if (strcmp(word, "cross") == 0) repeat(crossing, a);
    if (strcmp(word, "tails") == 0) repeat(passes_on, a);
    if (strcmp(word, "offsets") == 0) repeat(branches, a);
    for (long i = 0; i < a && strcmp(word, "halves") == 0; ++i)
      low_half((1L << 32) + i);
    if (strcmp(word, "child") == 0) run_child(a);
    if (strcmp(word, "texts") == 0) read_texts(a);
    if (strcmp(word, "spin") == 0) start_spinning(a);
    char path[200] = "";
    if (sscanf(line, "load %199s", path) == 1) load(path);
    if (strcmp(word, "unload") == 0) dlclose(library);
    if (strcmp(word, "plug") == 0) repeat(plug, a);
    if (strcmp(word, "plugged") == 0) repeat(plugged, a);
    if (strcmp(word, "mark") == 0) *mark = (unsigned short)a;
    if (strcmp(word, "naps") == 0) repeat(nap, a);
    if (strcmp(word, "heirs") == 0) run_heirs(a);
    if (strcmp(word, "calm") == 0) stop_spinning();
    if (strcmp(word, "many") == 0) {
      for (long i = 0; i < a; ++i)
        many(i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, i + 8, i + 9);
    }
    if (strcmp(word, "tell") == 0) {
      for (long i = 0; i < a; ++i)
        tell(i, "told");
    }
    printf("%ld\n", answer_to(word));
  }
  return 0;
}
