// SPDX-License-Identifier: Apache-2.0
// Victim `contexts`: functions that are entered in one context of makecontext(3) and left after
// others ran, in the order they came; each context has a small stack of its own.
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "victim.h"

VICTIM_COUNTER(context_body);
VICTIM_COUNTER(context_step);

enum { kContexts = 9, kSteps = 4, kStackSize = 32 * 1024 };

struct Context {
  ucontext_t place;
  uint64_t value;
  int done;
  char stack[kStackSize] __attribute__((aligned(16)));
};

static struct Context contexts[kContexts];
static ucontext_t scheduler;
static int running;

static void give_way(void) {
  VICTIM_CHECK(swapcontext(&contexts[running].place, &scheduler) == 0);
}

// Left in the middle and come back to.
VICTIM_FUNCTION uint64_t context_step(uint64_t x) {
  VICTIM_COUNT(context_step);
  const uint64_t before = victim_mix(x, 31);
  give_way();
  return before + x;
}

VICTIM_FUNCTION uint64_t context_body(uint64_t x) {
  VICTIM_COUNT(context_body);
  for (int step = 0; step < kSteps; ++step)
    x = context_step(x);
  return x;
}

static void context_main(void) {
  struct Context* const self = &contexts[running];
  self->value = context_body(self->value);
  self->done = 1;
  give_way();  // For ever.
}

static void start(struct Context* context, uint64_t value) {
  getcontext(&context->place);
  context->place.uc_stack.ss_sp = context->stack;
  context->place.uc_stack.ss_size = sizeof context->stack;
  context->place.uc_link = NULL;
  context->value = value;
  context->done = 0;
  makecontext(&context->place, context_main, 0);
}

const struct VictimCommand victim_commands[] = {{0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kContexts; ++i)
      start(&contexts[i], round * kContexts + (uint64_t)i);
    for (int pass = 0; pass <= kSteps; ++pass) {
      for (running = 0; running < kContexts; ++running)
        VICTIM_CHECK(swapcontext(&scheduler, &contexts[running].place) == 0);
    }
    for (int i = 0; i < kContexts; ++i) {
      VICTIM_CHECK(contexts[i].done);
      digest = victim_mix(digest, contexts[i].value);
    }
  }
  return digest;
}
