// SPDX-License-Identifier: Apache-2.0
// Takes decisions at random, and writes the line of each into a file (argument 1) that outlives it:
// what is shown can be compared with that, line by line. Argument 2: the seed. Argument 3: how many
// rounds, 0 for no end; 200 without. Argument 4: handlers decide things, too, 10,000 times a
// second. Argument 5: in which of them it kills itself. Argument 6: they run in threads that are
// about to begin.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))
#define STEP                                        \
  do {                                              \
    __asm__ volatile("" ::: "memory");              \
    lines[(*count)++ & (kLinesMax - 1)] = __LINE__; \
    __asm__ volatile("" ::: "memory");              \
  } while (0)

enum { kLinesMax = 1 << 20 };
static volatile uint32_t* lines;
static volatile uint32_t* count;
static uint64_t seed;
static volatile int odd;

KEPT static unsigned any(unsigned below) {
  STEP;
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(seed >> 33) % below;
}

KEPT static int leaf(int depth) {
  if (any(2)) {
    STEP;
    odd += depth;
  } else if (any(3) == 0) {
    STEP;
    odd ^= depth;
    if (any(2)) return odd;
    STEP;
  }
  STEP;
  return depth;
}

KEPT static int order(const void* left, const void* right) {
  STEP;
  const int a = *(const int*)left;
  const int b = *(const int*)right;
  if (a < b) {
    STEP;
    return -1;
  }
  STEP;
  return a > b;
}

KEPT static void sort_some(void) {
  int values[9];
  for (int i = 0; i < 9; ++i) {
    values[i] = (int)any(100);
    STEP;
  }
  qsort(values, 9, sizeof *values, order);
  STEP;
  odd += values[4];
}

KEPT static int tree(int depth) {
  STEP;
  int sum = 0;
  switch (any(8)) {
    case 0:
      STEP;
      sum += leaf(depth);
      break;
    case 1:
      STEP;
      sum -= leaf(depth + 1);
      break;
    case 2:
      STEP;
      sum ^= 9;
      break;
    case 3:
      STEP;
      sort_some();
      break;
    case 4:
      STEP;
      break;
    case 5:
      STEP;
      sum += odd;
      __attribute__((fallthrough));
    case 6:
      STEP;
      sum += 2;
      break;
    case 7:
      STEP;
      return leaf(sum);
  }
  while (depth > 0 && any(4) != 0) {
    STEP;
    sum += tree(depth - 1);
    if (sum & 1 && any(5) == 0) {
      STEP;
      break;
    }
    if (any(6) == 0) continue;
    STEP;
  }
  STEP;
  return sum;
}

KEPT static unsigned scatter(unsigned number) {
  if (number % 3 == 0) return number * 5;
  return number % 7 < 3 ? number + 2 : number ^ 9;
}

// Again 100 us after the handler: a tracer that takes longer than that for a signal would leave the
// program no time for its steps.
static void set_timer(void) {
  const struct itimerval once = {{0, 0}, {0, 100}};
  setitimer(ITIMER_REAL, &once, NULL);
}

static unsigned last_handler;

static void on_timer(int number) {
  static volatile unsigned handled, noise;
  (void)number;
  for (unsigned i = 0; i < 1 + handled % 9; ++i)
    noise += scatter(handled + i);
  if (++handled == last_handler) kill(getpid(), SIGKILL);
  set_timer();
}

static void start_timer(void) {
  const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  set_timer();
}

static void* ends_at_once(void* nothing) {
  return nothing;
}

// This thread blocks the signal, and the new one gets it in front of its first function.
static void begin_thread(void) {
  static pthread_attr_t attributes;
  sigset_t blocked, none;
  sigemptyset(&none);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setsigmask_np(&attributes, &none);
  pthread_t thread;
  (void)pthread_create(&thread, &attributes, ends_at_once, NULL);
}

int main(int words_count, char** words) {
  if (words_count < 3) return 2;
  const int file = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  const size_t size = (kLinesMax + 1) * sizeof *lines;
  if (file < 0 || ftruncate(file, (off_t)size) != 0) return 2;
  count = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count == MAP_FAILED) return 2;
  lines = count + 1;
  seed = strtoull(words[2], NULL, 10) * 977;
  const unsigned rounds = words_count > 3 ? (unsigned)atoi(words[3]) : 200;
  if (words_count > 5) last_handler = (unsigned)atoi(words[5]);
  if (words_count > 4) start_timer();
  for (unsigned i = 0; rounds == 0 || i < rounds; ++i) {
    if (words_count > 6) begin_thread();
    odd += tree(5);
  }
  STEP;
  *(volatile int*)(uintptr_t)(seed & 0) = 1;
  return 3;
}
