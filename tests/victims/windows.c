// SPDX-License-Identifier: Apache-2.0
// Victim `windows`: threads whose next instruction, or whose saved one, lies inside the bytes that
// a jump would replace. A thread steps itself with the trap flag until it stands at entry + 1, and
// there waits: in the handler of the trap (the address is in a signal frame on its stack), or as a
// suspended coroutine (the address is in that frame, and the stack belongs to nobody that runs).
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(one_byte_first);

enum { kStackSize = 64 * 1024, kTrapFlag = 0x100 };

// push rbx (1 byte), then five more: entry + 1 is inside any 5-byte window.
uint64_t one_byte_first(uint64_t x);
__asm__(
    ".text\n.balign 16\n.globl one_byte_first\n.type one_byte_first, @function\n"
    "one_byte_first:\n.cfi_startproc\n"
    "  push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\n"
    "  mov %rdi, %rbx\n"
    "  lea 3(%rbx, %rbx, 4), %rax\n"
    "  pop %rbx\n.cfi_adjust_cfa_offset -8\n"
    "  ret\n.cfi_endproc\n.size one_byte_first, . - one_byte_first\n");

static uint64_t call_counted(uint64_t x) {
  VICTIM_COUNT(one_byte_first);
  return one_byte_first(x);
}

// Calls with the trap flag on: SIGTRAP after every instruction until the handler clears it.
static uint64_t call_stepped(uint64_t x) {
  VICTIM_COUNT(one_byte_first);
  uint64_t result = x;
  __asm__ volatile(
      "sub $256, %%rsp\n"  // The red zone of this function, and alignment to taste.
      "pushfq\n"
      "orq %1, (%%rsp)\n"
      "popfq\n"
      "call one_byte_first\n"
      "add $256, %%rsp\n"
      : "=a"(result)
      : "i"(kTrapFlag), "D"(x)
      : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
  return result;
}

static int wake_pipe[2];
static pthread_t sleeper;
static uint64_t sleeper_result;
static volatile int in_window;
static volatile int as_coroutine;
static ucontext_t main_context, coroutine_context;
static uint64_t coroutine_result;

static void on_trap(int signal, siginfo_t* info, void* raw) {
  (void)signal;
  (void)info;
  ucontext_t* context = raw;
  greg_t* registers = context->uc_mcontext.gregs;
  if ((uint64_t)registers[REG_RIP] != (uint64_t)&one_byte_first + 1) return;
  registers[REG_EFL] &= ~(greg_t)kTrapFlag;
  __atomic_store_n(&in_window, 1, __ATOMIC_SEQ_CST);
  if (as_coroutine) {
    swapcontext(&coroutine_context, &main_context);  // Suspended here until `resume`.
  } else {
    char byte = 0;
    VICTIM_CHECK(read(wake_pipe[0], &byte, 1) == 1);
  }
}

static void install_handler(void) {
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGTRAP, &action, NULL);
}

static void* sleep_in_window(void* unused) {
  (void)unused;
  sleeper_result = call_stepped(100);
  return NULL;
}

// A thread sleeps in a signal handler; the interrupted address is entry + 1.
static void suspend_in_handler(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(pipe(wake_pipe) == 0);
  install_handler();
  as_coroutine = 0;
  in_window = 0;
  VICTIM_CHECK(pthread_create(&sleeper, NULL, sleep_in_window, NULL) == 0);
  while (!__atomic_load_n(&in_window, __ATOMIC_SEQ_CST)) {
  }
}

static void wake_handler(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(write(wake_pipe[1], "x", 1) == 1);
  pthread_join(sleeper, NULL);
  VICTIM_CHECK(sleeper_result == 503);
  victim_print("result", sleeper_result);
}

static void coroutine_body(void) {
  coroutine_result = call_stepped(200);
}

// The same on a stack of its own, left by swapcontext from the handler.
static void suspend_coroutine(uint64_t unused) {
  (void)unused;
  install_handler();
  as_coroutine = 1;
  in_window = 0;
  void* stack = mmap(NULL, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ucontext_t start;
  getcontext(&start);
  start.uc_stack.ss_sp = stack;
  start.uc_stack.ss_size = kStackSize;
  start.uc_link = &main_context;
  makecontext(&start, coroutine_body, 0);
  swapcontext(&main_context, &start);
  VICTIM_CHECK(in_window == 1);
}

static void resume_coroutine(uint64_t unused) {
  (void)unused;
  swapcontext(&main_context, &coroutine_context);
  VICTIM_CHECK(coroutine_result == 1003);
  victim_print("result", coroutine_result);
}

// For a debugger that wants to stop us there.
static void address(uint64_t unused) {
  (void)unused;
  victim_print("address", (uint64_t)&one_byte_first);
}

const struct VictimCommand victim_commands[] = {{"suspend_in_handler", suspend_in_handler},
                                                {"wake_handler", wake_handler},
                                                {"suspend_coroutine", suspend_coroutine},
                                                {"resume_coroutine", resume_coroutine},
                                                {"address", address},
                                                {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t value = call_counted(round);
    VICTIM_CHECK(value == 5 * round + 3);
    digest = victim_mix(digest, value);
  }
  return digest;
}
