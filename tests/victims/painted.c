// SPDX-License-Identifier: Apache-2.0
// Victim `painted`: calls a function on a stack that it has painted, and looks how deep the paint
// was touched: bytes below the stack pointer of the call. The counter `deepest` is the most of all
// rounds, `usual` what the last one touched.
#include <string.h>

#include "victim.h"

VICTIM_COUNTER(deepest);
VICTIM_COUNTER(usual);

enum { kStackBytes = 64 * 1024, kPaint = 0xA5 };

static unsigned char stack[kStackBytes] __attribute__((aligned(4096)));
static const char kText[] = "a text of some length";

VICTIM_FUNCTION uint64_t touched(uint64_t value, const char* text) {
  __asm__ volatile("" : "+r"(value) : "r"(text) : "memory");
  return value + 1;
}

// The compiler keeps what it needs in registers that functions preserve.
static uint64_t call_on(unsigned char* top, uint64_t value, const char* text) {
  uint64_t result;
  __asm__ volatile(
      "mov %%rsp, %%rbx\n"
      "mov %[top], %%rsp\n"
      "call touched\n"
      "mov %%rbx, %%rsp\n"
      : "=a"(result), "+D"(value), "+S"(text)
      : [top] "r"(top)
      : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
  return result;
}

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  unsigned char* const top = stack + kStackBytes - 4096;
  for (uint64_t i = 0; i < rounds; ++i) {
    memset(stack, kPaint, sizeof stack);
    digest = victim_mix(digest, call_on(top, i, kText));
    const unsigned char* lowest = stack;
    while (lowest < top && *lowest == kPaint)
      ++lowest;
    const uint64_t depth = (uint64_t)(top - lowest);
    victim_counter_usual.value = depth;
    if (depth > victim_counter_deepest.value) victim_counter_deepest.value = depth;
  }
  return digest;
}

const struct VictimCommand victim_commands[] = {{0, 0}};
