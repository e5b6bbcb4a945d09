// SPDX-License-Identifier: Apache-2.0
// Victim `forms`: plain, recursive and tail-called functions with one exit and with several, in the
// first thread and in new ones. It is built in every form that a program is linked in, with two C
// libraries, and with landing pads for indirect jumps.
#include <pthread.h>
#include <stdint.h>

#include "victim.h"

VICTIM_COUNTER(form_plain);
VICTIM_COUNTER(form_exits);
VICTIM_COUNTER(form_tail);
VICTIM_COUNTER(form_deep);

enum { kThreads = 4, kDepth = 5 };

// It begins with two instructions of four bytes that the kernel can move, too, which the counter's
// is not. They change the third argument.
VICTIM_FUNCTION uint64_t form_plain(uint64_t x) {
  uint64_t value = 0;
  __asm__ volatile("lea 1(%1), %0\n lea 2(%0), %0" : "=d"(value) : "D"(x));
  VICTIM_COUNT(form_plain);
  return victim_mix(value, 3);
}

VICTIM_FUNCTION uint64_t form_exits(uint64_t x) {
  VICTIM_COUNT(form_exits);
  if (x % 3 == 0) return form_plain(x) + 1;
  if (x % 3 == 1) return x ^ (x >> 5);
  return x + 7;
}

VICTIM_FUNCTION uint64_t form_tail(uint64_t x) {
  VICTIM_COUNT(form_tail);
  return form_exits(x + 1);
}

VICTIM_FUNCTION uint64_t form_deep(uint64_t depth, uint64_t x) {
  VICTIM_COUNT(form_deep);
  if (depth == 0) return form_tail(x);
  uint64_t value = form_deep(depth - 1, x);
  __asm__ volatile("" : "+r"(value));  // It stays a recursion.
  return value * 3 + depth;
}

static uint64_t work(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, form_deep(kDepth, round));
  return digest;
}

static void* thread_main(void* rounds) {
  return (void*)work((uint64_t)rounds);
}

static void print_address(uint64_t unused) {
  (void)unused;
  victim_print("form_plain", (uint64_t)&form_plain);
  victim_print("form_exits", (uint64_t)&form_exits);
}

const struct VictimCommand victim_commands[] = {{"addresses", print_address}, {0}};

uint64_t victim_run(uint64_t rounds) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    VICTIM_CHECK(pthread_create(&threads[i], NULL, thread_main, (void*)(rounds + (uint64_t)i)) ==
                 0);
  }
  uint64_t digest = work(rounds);
  for (int i = 0; i < kThreads; ++i) {
    void* value = NULL;
    pthread_join(threads[i], &value);
    digest = victim_mix(digest, (uint64_t)value);
  }
  return digest;
}
