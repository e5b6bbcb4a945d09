// SPDX-License-Identifier: Apache-2.0
// Victim `generated`: runs code that it made itself and tells the names of by /tmp/perf-PID.map, as
// just-in-time compilers do. `make N` makes one function more, made_N, whose frame has a frame
// pointer, and which calls the one before it, the first of them `at_leaf`; `run` calls the last.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(at_leaf);

enum { kPageSize = 4096, kFunctionSize = 32 };

static char map_path[64];
static unsigned char* code;
static unsigned made_count;
static uint64_t (*last)(uint64_t);

// It is counted where it is called from: the kernel sets no uprobe at an instruction with `lock`.
VICTIM_FUNCTION uint64_t at_leaf(uint64_t x) {
  __asm__ volatile("" : "+r"(x));
  return x * 3;
}

static void remove_map(void) {
  unlink(map_path);
}

static void tell_name(const unsigned char* function, uint64_t number) {
  FILE* const map = fopen(map_path, "a");
  VICTIM_CHECK(map != NULL);
  fprintf(map, "%lx %x made_%lu\n", (unsigned long)function, kFunctionSize, (unsigned long)number);
  fclose(map);
}

static void make(uint64_t number) {
  static const unsigned char kFrame[] = {0x55,                                   // push rbp
                                         0x48, 0x89, 0xe5,                       // mov rbp, rsp
                                         0x48, 0xb8, 0,    0, 0, 0, 0, 0, 0, 0,  // mov rax, callee
                                         0xff, 0xd0,                             // call rax
                                         0x48, 0xff, 0xc0,                       // inc rax
                                         0x5d,                                   // pop rbp
                                         0xc3};                                  // ret
  if (code == NULL) {
    code = mmap(NULL, kPageSize, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", getpid());
    remove_map();
    atexit(remove_map);
  }
  unsigned char* const function = code + kFunctionSize * made_count++;
  uint64_t (*const callee)(uint64_t) = last == NULL ? at_leaf : last;
  memcpy(function, kFrame, sizeof kFrame);
  memcpy(function + 6, &callee, sizeof callee);
  tell_name(function, number);
  memcpy(&last, &function, sizeof last);
  victim_print("made", made_count);
}

const struct VictimCommand victim_commands[] = {{"make", make}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  if (last == NULL) make(1);
  for (uint64_t round = 0; round < rounds; ++round) {
    VICTIM_COUNT(at_leaf);
    const uint64_t result = last(round);
    VICTIM_CHECK(result == round * 3 + made_count);
    digest = victim_mix(digest, result);
  }
  return digest;
}
