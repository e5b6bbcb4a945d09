// SPDX-License-Identifier: Apache-2.0
// leaky: leaks from two functions, of which it knows how much, among many that give all back; some
// of it on other threads than they took it. It opens files, and closes some.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "victim.h"

// What `leak 400` and `churn` do together fits into a thread's ring, if nobody reads meanwhile.
enum { kChurn = 500, kQueue = 64, kLeakedMax = 10000 };

static void* volatile leaked[kLeakedMax];
static int leaked_count;

VICTIM_COUNTER(leak_small);
VICTIM_COUNTER(leak_grown);

VICTIM_FUNCTION void* leak_small(void) {
  VICTIM_COUNT(leak_small);
  void* p = malloc(48);
  leaked[leaked_count++ % kLeakedMax] = p;
  return p;
}

VICTIM_FUNCTION void* leak_grown(void) {
  VICTIM_COUNT(leak_grown);
  char* p = calloc(10, 10);
  p = realloc(p, 5000);
  leaked[leaked_count++ % kLeakedMax] = p;
  return p;
}

VICTIM_FUNCTION void give_back(void) {
  void* p = malloc(64);
  leaked[kLeakedMax - 1] = p;
  free(p);
}

// What one thread takes another one gives back.
static void* volatile handed[kQueue];

static void* give_back_others(void* unused) {
  (void)unused;
  for (int i = 0; i < kChurn; ++i) {
    void* p = 0;
    while ((p = __atomic_exchange_n(&handed[i % kQueue], 0, __ATOMIC_ACQ_REL)) == 0) {
    }
    free(p);
  }
  return 0;
}

static void churn(void) {
  pthread_t other;
  pthread_create(&other, 0, give_back_others, 0);
  for (int i = 0; i < kChurn; ++i) {
    void* p = malloc(32);
    while (__atomic_load_n(&handed[i % kQueue], __ATOMIC_ACQUIRE) != 0) {
    }
    __atomic_store_n(&handed[i % kQueue], p, __ATOMIC_RELEASE);
  }
  pthread_join(other, 0);
}

static void leak(unsigned long times) {
  for (unsigned long i = 0; i < times; ++i) {
    leak_small();
    if (i % 4 == 0) leak_grown();
    give_back();
  }
}

static void files(unsigned long kept) {
  int close_them[8];
  for (int i = 0; i < 8; ++i)
    close_them[i] = open("/dev/null", O_RDONLY);
  for (unsigned long i = 0; i < kept; ++i)
    (void)!open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 8; ++i)
    close(close_them[i]);
  (void)!open("/there/is/none", O_RDONLY);
}

// So often: one leak of 48 bytes, and of 5,000 bytes each fourth time.
static void leak_so_often(uint64_t times) {
  leak(times);
  victim_print("small", times);
  victim_print("grown", (times + 3) / 4);
}

static void churn_once(uint64_t unused) {
  (void)unused;
  churn();
}

static void open_files(uint64_t kept) {
  files(kept);
  victim_print("kept", kept);
}

const struct VictimCommand victim_commands[] = {
    {"leak", leak_so_often}, {"churn", churn_once}, {"files", open_files}, {0}};

uint64_t victim_run(uint64_t rounds) {
  leak(rounds);
  return (uint64_t)leaked_count;
}
