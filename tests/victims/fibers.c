// SPDX-License-Identifier: Apache-2.0
// Victim `fibers`: functions entered on one stack and left much later, out of order, after others
// ran in between, and also on another thread than the one that entered them.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "victim.h"

VICTIM_COUNTER(across_switch);
VICTIM_COUNTER(between);

enum { kFibers = 11, kStackSize = 64 * 1024 };

// Saves what a callee keeps, stores rsp at *from, and goes on where `to` was left.
void switch_fiber(void** from, void* to);
__asm__(
    ".text\n.balign 16\n.globl switch_fiber\n.type switch_fiber, @function\n"
    "switch_fiber:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  ret\n.size switch_fiber, . - switch_fiber\n");

struct Fiber {
  void* stack;     // Mapped memory.
  void* position;  // Saved rsp while it does not run.
  void** resumer;  // Where its runner's rsp is saved.
  uint64_t input;
  uint64_t output;
  int done;
};

static struct Fiber fibers[kFibers];
static struct Fiber* starting;

VICTIM_FUNCTION uint64_t between(uint64_t x) {
  VICTIM_COUNT(between);
  return x ^ (x >> 3);
}

// Entered once per fiber; the switch in the middle leaves it open.
VICTIM_FUNCTION uint64_t across_switch(struct Fiber* fiber) {
  VICTIM_COUNT(across_switch);
  const uint64_t before = between(fiber->input);
  switch_fiber(&fiber->position, *fiber->resumer);
  return before + between(fiber->input + 1);
}

static void fiber_main(void) {
  struct Fiber* fiber = starting;
  fiber->output = across_switch(fiber);
  fiber->done = 1;
  switch_fiber(&fiber->position, *fiber->resumer);
  abort();  // A finished fiber is never resumed.
}

static void start(struct Fiber* fiber, uint64_t input) {
  if (!fiber->stack) {
    fiber->stack =
        mmap(NULL, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  uint64_t* top = (uint64_t*)((char*)fiber->stack + kStackSize);
  *--top = 0;                      // Where fiber_main would return to.
  *--top = (uint64_t)&fiber_main;  // Popped by the `ret` of switch_fiber.
  top -= 6;                        // The six saved registers.
  fiber->position = top;
  fiber->input = input;
  fiber->done = 0;
}

static void resume(struct Fiber* fiber) {
  void* here = NULL;
  fiber->resumer = &here;
  starting = fiber;
  switch_fiber(&here, fiber->position);
}

static void* resume_odd(void* unused) {
  for (int i = 1; i < kFibers; i += 2)
    resume(&fibers[i]);
  return unused;
}

// All fibers enter; the even ones leave in the order they came (a stack would leave the other way
// round), the odd ones on another thread.
uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kFibers; ++i) {
      start(&fibers[i], round * kFibers + (uint64_t)i);
      resume(&fibers[i]);
    }
    for (int i = 0; i < kFibers; i += 2)
      resume(&fibers[i]);
    pthread_t other;
    VICTIM_CHECK(pthread_create(&other, NULL, resume_odd, NULL) == 0);
    pthread_join(other, NULL);
    for (int i = 0; i < kFibers; ++i) {
      const uint64_t x = fibers[i].input;
      VICTIM_CHECK(fibers[i].done);
      VICTIM_CHECK(fibers[i].output == (x ^ (x >> 3)) + ((x + 1) ^ ((x + 1) >> 3)));
      digest = victim_mix(digest, fibers[i].output);
    }
  }
  return digest;
}

const struct VictimCommand victim_commands[] = {{0}};
