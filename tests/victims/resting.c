// SPDX-License-Identifier: Apache-2.0
// Victim `resting`: a coroutine that a signal interrupts in code which is not the program's, that
// of a probe, and that is switched away from: `rest N` in the Nth instruction there. Nobody can say
// when it goes on (`resume`). `fork` makes a child which waits, with that coroutine in its memory,
// and prints `child`; `end_child` lets the child do its own rounds, and prints its `status`.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(interrupted);

enum { kStackSize = 64 * 1024, kTrapFlag = 0x100, kInput = 200 };

extern const char __executable_start, etext;

// It is counted where it is called from: the kernel sets no uprobe at an instruction with `lock`.
VICTIM_FUNCTION uint64_t interrupted(uint64_t x) {
  __asm__ volatile("" : "+r"(x));
  return x * 5 ^ 3;
}

static ucontext_t main_context, coroutine_context;
static void* stack;
static uint64_t rest_at;
static uint64_t foreign_steps;
static uint64_t coroutine_result;
static pid_t child;
static int child_pipe[2];

static uint64_t call_stepped(uint64_t x) {
  uint64_t result = x;
  VICTIM_COUNT(interrupted);
  __asm__ volatile(
      "sub $256, %%rsp\n"  // The red zone of this function, and alignment to taste.
      "pushfq\n"
      "orq %1, (%%rsp)\n"
      "popfq\n"
      "call interrupted\n"
      "pushfq\n"
      "andq %2, (%%rsp)\n"
      "popfq\n"
      "add $256, %%rsp\n"
      : "=a"(result)
      : "i"(kTrapFlag), "i"(~kTrapFlag), "D"(x)
      : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
  return result;
}

static void on_trap(int signal, siginfo_t* info, void* raw) {
  (void)signal;
  (void)info;
  greg_t* const registers = ((ucontext_t*)raw)->uc_mcontext.gregs;
  const char* const at = (const char*)registers[REG_RIP];
  if (at >= &__executable_start && at < &etext) return;
  if (++foreign_steps != rest_at) return;
  registers[REG_EFL] &= ~(greg_t)kTrapFlag;
  swapcontext(&coroutine_context, &main_context);
}

static void coroutine_body(void) {
  coroutine_result = call_stepped(kInput);
}

static void rest(uint64_t instruction) {
  const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGTRAP, &action, NULL);
  rest_at = instruction;
  foreign_steps = 0;
  stack = mmap(NULL, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ucontext_t start;
  getcontext(&start);
  start.uc_stack.ss_sp = stack;
  start.uc_stack.ss_size = kStackSize;
  start.uc_link = &main_context;
  makecontext(&start, coroutine_body, 0);
  swapcontext(&main_context, &start);
  victim_print("rests", foreign_steps == rest_at);
}

// The signal's frame goes with the stack.
static void resume(uint64_t unused) {
  (void)unused;
  swapcontext(&main_context, &coroutine_context);
  munmap(stack, kStackSize);
  VICTIM_CHECK(coroutine_result == (kInput * 5 ^ 3));
  victim_print("result", coroutine_result);
}

static void live_as_child(void) {
  char byte = 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (read(child_pipe[0], &byte, 1) != 1) _exit(2);
  uint64_t errors = 0;
  for (uint64_t i = 0; i < 50; ++i)
    errors += interrupted(i) != (i * 5 ^ 3);
  if (byte == 'r') {
    swapcontext(&main_context, &coroutine_context);
    errors += coroutine_result != (kInput * 5 ^ 3);
  }
  _exit(errors == 0 ? 0 : 1);
}

static void make_child(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(pipe(child_pipe) == 0);
  child = fork();
  if (child == 0) live_as_child();
  victim_print("child", (uint64_t)child);
}

// With 1 it resumes the coroutine, too.
static void end_child(uint64_t resumes) {
  int status = -1;
  VICTIM_CHECK(write(child_pipe[1], resumes ? "r" : "e", 1) == 1);
  VICTIM_CHECK(waitpid(child, &status, 0) == child);
  victim_print("status", (uint64_t)status);
}

static void address(uint64_t unused) {
  (void)unused;
  victim_print("address", (uint64_t)&interrupted);
}

const struct VictimCommand victim_commands[] = {{"rest", rest},       {"resume", resume},
                                                {"fork", make_child}, {"end_child", end_child},
                                                {"address", address}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    VICTIM_COUNT(interrupted);
    digest = victim_mix(digest, interrupted(round));
  }
  return digest;
}
