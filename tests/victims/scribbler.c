// SPDX-License-Identifier: Apache-2.0
// Victim `scribbler`: works as told on its first thread, while another one writes over all memory
// that tracers share with it and let it write to, as fast as it can: `scribble SEED` begins that,
// `stop` ends it and prints `written`, how many words. It writes where pages are in use, most often
// at their beginnings, what an attacker would choose; and by a call of the kernel, so that memory
// which goes meanwhile is no fault.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(scribbled_work);
VICTIM_COUNTER(scribbled_step);

enum { kPageSize = 4096, kPagesMax = 1 << 14, kPartPages = 1 << 14, kWordsPerLook = 2000 };

static uint64_t pages[kPagesMax];
static unsigned page_count;
static uint64_t state;
static uint64_t written;
static int is_on;
static pthread_t writer;

VICTIM_FUNCTION uint64_t scribbled_step(uint64_t x) {
  VICTIM_COUNT(scribbled_step);
  return x ^ (x >> 7);
}

VICTIM_FUNCTION uint64_t scribbled_work(uint64_t x) {
  VICTIM_COUNT(scribbled_work);
  const uint64_t first = scribbled_step(x + 1);
  return first * 3 + scribbled_step(x + 2);
}

static uint64_t dice(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static uint64_t nasty_word(void) {
  switch (dice() % 6) {
    case 0:
      return 0;
    case 1:
      return UINT64_MAX;
    case 2:
      return dice() % 4096;
    case 3:
      return (uint64_t)1 << dice() % 64;
    case 4:
      return dice() % 4 << 32 | dice() % 64 * 8;
    default:
      return dice();
  }
}

// Pages of the beginning of a mapping that are in memory.
static void add_pages(uint64_t begin, uint64_t end) {
  static unsigned char is_there[kPartPages];
  uint64_t count = (end - begin) / kPageSize;
  if (count > kPartPages) count = kPartPages;
  if (mincore((void*)begin, count * kPageSize, is_there) != 0) return;
  for (uint64_t i = 0; i < count && page_count < kPagesMax; ++i) {
    if (is_there[i] & 1) pages[page_count++] = begin + i * kPageSize;
  }
}

// What is written to is all that sessions map writable and shared.
static void look_for_pages(void) {
  char line[512];
  page_count = 0;
  FILE* const maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return;
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin = 0;
    unsigned long end = 0;
    const int is_tracers = strstr(line, "/memfd:clew") != NULL || strstr(line, "bpf-map") != NULL;
    if (is_tracers && sscanf(line, "%lx-%lx rw", &begin, &end) == 2 && strstr(line, " rw-s "))
      add_pages(begin, end);
  }
  fclose(maps);
}

static void write_word(void) {
  const uint64_t page = pages[dice() % page_count];
  const uint64_t in_page = (dice() % 2 ? dice() % kPageSize : dice() % 512) & ~(uint64_t)7;
  uint64_t word = nasty_word();
  const struct iovec from = {.iov_base = &word, .iov_len = sizeof word};
  const struct iovec to = {.iov_base = (void*)(page + in_page), .iov_len = sizeof word};
  if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof word)
    __atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
}

static void* write_on(void* unused) {
  while (__atomic_load_n(&is_on, __ATOMIC_RELAXED)) {
    look_for_pages();
    for (int i = 0; i < kWordsPerLook && page_count != 0; ++i)
      write_word();
  }
  return unused;
}

static void scribble(uint64_t seed) {
  state = seed * 2654435761 + 1;
  __atomic_store_n(&is_on, 1, __ATOMIC_RELAXED);
  if (pthread_create(&writer, NULL, write_on, NULL) != 0) abort();
}

static void stop(uint64_t unused) {
  (void)unused;
  __atomic_store_n(&is_on, 0, __ATOMIC_RELAXED);
  pthread_join(writer, NULL);
  victim_print("written", written);
}

const struct VictimCommand victim_commands[] = {{"scribble", scribble}, {"stop", stop}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, scribbled_work(round));
  return digest;
}
