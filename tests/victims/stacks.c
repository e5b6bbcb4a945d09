// SPDX-License-Identifier: Apache-2.0
// Known chains of calls, one after the other, each of which ends in leaf(): it makes the system
// call getppid(2), once. Built without frame pointers. With an argument it only burns time in a
// known chain until its input ends.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
// Keeps the call in front of it from being the function's last action, which needs no frame.
#define STAY __asm__ volatile("" ::: "memory")

volatile int sink;

APART void leaf(void) {
  syscall(SYS_getppid);
  STAY;
}

static inline __attribute__((always_inline)) void inlined_call(void) {
  leaf();  // MARK inlined
  STAY;
}

APART void recurse(int depth) {
  if (depth == 0) {
    inlined_call();  // MARK caller
  } else {
    recurse(depth - 1);
  }
  STAY;
}

static APART int compare(const void* a, const void* b) {
  leaf();
  STAY;
  return *(const int*)a - *(const int*)b;
}

APART void sort(void) {
  int numbers[2] = {2, 1};
  qsort(numbers, 2, sizeof numbers[0], compare);
  sink += numbers[0];
}

APART void on_signal(int number) {
  leaf();
  sink += number;
}

APART void raise_signal(void) {
  raise(SIGUSR1);
  STAY;
}

APART void on_other_stack(void) {
  static char room[65536];
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &action, NULL);
  raise_signal();
  STAY;
}

static APART void* in_thread(void* unused) {
  leaf();
  STAY;
  return unused;
}

APART void start_thread_and_wait(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, in_thread, NULL) == 0) pthread_join(thread, NULL);
  STAY;
}

APART void variable_frame(size_t size) {
  char* room = alloca(size);
  memset(room, 1, size);
  leaf();
  sink += room[size / 2];
}

// The compiler reaches the caller through a register of its own here.
APART void aligned_frame(size_t size) {
  volatile char aligned[64] __attribute__((aligned(64)));
  char* room = alloca(size);
  memset(room, 1, size);
  aligned[sink & 63] = room[0];
  leaf();
  sink += aligned[0] + room[1];
}

APART void large_frame(void) {
  volatile char room[300000];
  room[5] = 1;
  leaf();
  sink += room[5];
}

#ifndef STACKS_STATIC
void through_library(void (*callback)(void));  // stacks_library.c
#endif

// Calls leaf() on a stack of which nothing is true but the return address.
__asm__(
    ".text\n.type on_false_stack, @function\n.globl on_false_stack\n"
    "on_false_stack:\n.cfi_startproc\n"
    "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\n"
    "mov %rsp, %rbx\n mov %rdi, %rsp\n call leaf\n mov %rbx, %rsp\n"
    "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n ret\n"
    ".cfi_endproc\n.size on_false_stack, .-on_false_stack\n");
void on_false_stack(uint64_t* top);

// Reaches its caller through one register after the other, of which the last ones are a caller's.
__asm__(
    ".macro hop from, to\n mov %\\from, %\\to\n.cfi_def_cfa_register %\\to\n"
    " xor %\\from, %\\from\n.endm\n"
    ".macro keep name\n push %\\name\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %\\name, 0\n"
    ".endm\n"
    ".macro give_back name\n pop %\\name\n.cfi_adjust_cfa_offset -8\n.cfi_restore %\\name\n"
    ".endm\n"
    ".text\n.type odd_bases, @function\n.globl odd_bases\n"
    "odd_bases:\n.cfi_startproc\n"
    "keep rbx\n keep rbp\n keep r12\n keep r13\n keep r14\n keep r15\n"
    " lea 56(%rsp), %rax\n.cfi_def_cfa %rax, 0\n sub $64, %rsp\n"
    "hop rax, rcx\n hop rcx, rdx\n hop rdx, rsi\n hop rsi, rdi\n hop rdi, r8\n hop r8, r9\n"
    "hop r9, r10\n hop r10, r11\n hop r11, rbx\n hop rbx, rbp\n hop rbp, r12\n hop r12, r13\n"
    "hop r13, r14\n hop r14, r15\n"
    " lea -56(%r15), %rsp\n.cfi_def_cfa %rsp, 56\n"
    "give_back r15\n give_back r14\n give_back r13\n give_back r12\n give_back rbp\n"
    "give_back rbx\n ret\n"
    ".cfi_endproc\n.size odd_bases, .-odd_bases\n");
void odd_bases(void);

APART void false_stacks(void) {
  const size_t count = 4096;
  uint64_t* room =
      mmap(NULL, count * sizeof *room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) abort();
  for (size_t i = 0; i < count; ++i)
    room[i] = (uintptr_t)recurse + 1;  // Leads on and on.
  on_false_stack(room + count / 2);
  on_false_stack(room + count);  // Leads to memory that is not there.
  for (size_t i = 0; i < count; ++i)
    room[i] = (uintptr_t)(room + i);
  on_false_stack(room + count / 2);
}

APART void burn(void) {
  for (int i = 0; i < 100000; ++i)
    sink += i;
}

// Returns once it is told to: whoever looks behind "ready" finds it on the stack.
APART void burn_long(const volatile int* is_over) {
  puts("ready");
  fflush(stdout);
  while (!*is_over)
    burn();
  STAY;
}

static void* read_to_the_end(void* is_over) {
  while (getchar() != EOF) {
  }
  *(volatile int*)is_over = 1;
  return NULL;
}

static void burn_until_told(void) {
  static volatile int is_over;
  pthread_t thread;
  if (pthread_create(&thread, NULL, read_to_the_end, (void*)&is_over) != 0) abort();
  burn_long(&is_over);
  pthread_join(thread, NULL);
}

int main(int count, char** arguments) {
  (void)arguments;
  if (count > 1) {
    burn_until_told();
    return 0;
  }
  signal(SIGUSR1, on_signal);
  recurse(3);
  sort();
  raise_signal();
  on_other_stack();
  start_thread_and_wait();
  variable_frame(100);
  aligned_frame(100);
  large_frame();
  odd_bases();
#ifndef STACKS_STATIC
  through_library(leaf);
#endif
  false_stacks();
  return 0;
}
