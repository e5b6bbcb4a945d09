// SPDX-License-Identifier: Apache-2.0
// Calls a function in a loop and times it. Commands on standard input, one a line:
//
//     time FUNCTION THREADS DEPTH BURSTS CALLS PAUSE_US    -> ns_per_call, calls
//     exit
//
// Each thread makes BURSTS bursts of CALLS calls; before each call it builds a stack of DEPTH
// frames. Between bursts it rests for PAUSE_US (so that whoever reads events can keep up), which is
// not timed. The answer is the median burst of the median thread, in CPU time of the thread.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kThreadsMax = 64, kBurstsMax = 4096 };

typedef uint64_t Function(uint64_t);
uint64_t empty_frame(uint64_t x);
uint64_t empty_leaf(uint64_t x);
uint64_t empty_nop(uint64_t x);
uint64_t one_stamp(uint64_t x);
uint64_t two_stamps(uint64_t x);
uint64_t many_0000(uint64_t x);
uint64_t empty_memory(uint64_t address);

// The kernel does next to nothing here: what is left is the way into it and back.
static uint64_t system_call(uint64_t x) {
  return (uint64_t)syscall(SYS_getppid, x);
}

// Words that lead from one to the next, and texts, one of each length.
struct Memory {
  const void* next;
  char text[1024];
};
static struct Memory chain[5];
static struct Memory short_text, middle_text, long_text;

static void fill(struct Memory* memory, size_t length) {
  memset(memory->text, 'x', length);
}

static void fill_memory(void) {
  for (int i = 0; i < 4; ++i)
    chain[i].next = &chain[i + 1];
  fill(&short_text, 16);
  fill(&middle_text, 100);
  fill(&long_text, 1000);
}

static uint64_t with_chain(uint64_t x) {
  return empty_memory((uint64_t)chain) + x;
}
static uint64_t with_short_text(uint64_t x) {
  return empty_memory((uint64_t)short_text.text) + x;
}
static uint64_t with_middle_text(uint64_t x) {
  return empty_memory((uint64_t)middle_text.text) + x;
}
static uint64_t with_long_text(uint64_t x) {
  return empty_memory((uint64_t)long_text.text) + x;
}

struct Job {
  Function* function;
  int depth;
  int bursts;
  uint64_t calls;
  long pause_us;
  pthread_barrier_t* start;
  double ns_per_call;
};

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void rest(long pause_us) {
  if (pause_us == 0) return;
  const struct timespec pause = {pause_us / 1000000, pause_us % 1000000 * 1000};
  nanosleep(&pause, NULL);
}

// Keys of 0 to 63, for queries that group by the argument.
static void call_plain(Function* function, uint64_t calls) {
  for (uint64_t i = 0; i < calls; ++i)
    function(i & 63);
}

__attribute__((noinline)) static uint64_t descend(Function* function, uint64_t x, int depth) {
  if (depth == 0) return function(x);
  const uint64_t value = descend(function, x, depth - 1);
  __asm__ volatile("" : : : "memory");  // Keeps this a call, not a jump.
  return value + 1;
}

static void call_deep(Function* function, uint64_t calls, int depth) {
  for (uint64_t i = 0; i < calls; ++i)
    descend(function, i & 63, depth);
}

static void* thread_main(void* raw) {
  struct Job* job = raw;
  double* bursts = calloc((size_t)job->bursts, sizeof *bursts);
  pthread_barrier_wait(job->start);
  for (int i = 0; i < job->bursts; ++i) {
    const double start = cpu_ns();
    if (job->depth == 0) {
      call_plain(job->function, job->calls);
    } else {
      call_deep(job->function, job->calls, job->depth);
    }
    bursts[i] = (cpu_ns() - start) / (double)job->calls;
    rest(job->pause_us);
  }
  job->ns_per_call = median(bursts, job->bursts);
  free(bursts);
  return NULL;
}

static Function* find(const char* name) {
  if (strcmp(name, "empty_frame") == 0) return empty_frame;
  if (strcmp(name, "empty_leaf") == 0) return empty_leaf;
  if (strcmp(name, "empty_nop") == 0) return empty_nop;
  if (strcmp(name, "one_stamp") == 0) return one_stamp;
  if (strcmp(name, "two_stamps") == 0) return two_stamps;
  if (strcmp(name, "many_0000") == 0) return many_0000;
  if (strcmp(name, "system_call") == 0) return system_call;
  if (strcmp(name, "with_chain") == 0) return with_chain;
  if (strcmp(name, "with_short_text") == 0) return with_short_text;
  if (strcmp(name, "with_middle_text") == 0) return with_middle_text;
  if (strcmp(name, "with_long_text") == 0) return with_long_text;
  fprintf(stderr, "no function %s\n", name);
  exit(2);
}

static void run(const struct Job* job, int threads) {
  static struct Job jobs[kThreadsMax];
  static pthread_t ids[kThreadsMax];
  double results[kThreadsMax];
  pthread_barrier_t start;
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    jobs[i] = *job;
    jobs[i].start = &start;
    if (pthread_create(&ids[i], NULL, thread_main, &jobs[i]) != 0) exit(1);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    results[i] = jobs[i].ns_per_call;
  }
  pthread_barrier_destroy(&start);
  printf("ns_per_call %.4f\ncalls %llu\nend\n", median(results, threads),
         (unsigned long long)((uint64_t)threads * (uint64_t)job->bursts * job->calls));
}

int main(void) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  setvbuf(stdout, NULL, _IOLBF, 1 << 12);
  fill_memory();
  puts("ready");
  char line[256], name[64];
  while (fgets(line, sizeof line, stdin)) {
    struct Job job = {0};
    int threads = 0;
    unsigned long long calls = 0;
    const int words = sscanf(line, "time %63s %d %d %d %llu %ld", name, &threads, &job.depth,
                             &job.bursts, &calls, &job.pause_us);
    if (words != 6 || threads < 1 || threads > kThreadsMax || job.bursts > kBurstsMax) break;
    job.calls = calls;
    job.function = find(name);
    run(&job, threads);
  }
  return 0;
}
