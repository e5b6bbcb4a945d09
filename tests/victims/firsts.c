// SPDX-License-Identifier: Apache-2.0
// Victim `firsts`: functions that differ in their first instruction, which is where others put
// their breakpoints. Each gives expected_of() of its argument; what it does first matters to that.
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

static volatile uint64_t word = 5;
// Counted by a first instruction.
__attribute__((used, visibility("hidden"))) uint64_t firsts_hits = 0;

// body: from rdi, with the first instruction's doing, rax = 2 * rdi + 5.
#define FIRST(name, first, body)                                                                  \
  VICTIM_COUNTER(name);                                                                           \
  uint64_t name(uint64_t x, const volatile uint64_t* five);                                       \
  __asm__(".text\n.balign 16\n.globl " #name "\n.type " #name ", @function\n" #name               \
          ":\n"                                                                                   \
          ".cfi_startproc\n" first "\n" body "\n  ret\n.cfi_endproc\n.size " #name ", . - " #name \
          "\n")

FIRST(first_push_one_byte, "push %rbx", "mov %rdi, %rbx\n lea 5(%rbx, %rbx), %rax\n pop %rbx");
FIRST(first_push_two_bytes, "push %r12", "mov %rdi, %r12\n lea 5(%r12, %r12), %rax\n pop %r12");
FIRST(first_push_argument, "push %rdi", "lea 5(%rdi), %rax\n add (%rsp), %rax\n pop %rdi");
FIRST(first_push_rsp, "push %rsp",
      "lea 8(%rsp), %rax\n sub (%rsp), %rax\n lea 5(%rax, %rdi, 2), %rax\n pop %rdx");
FIRST(first_small_frame, "sub $24, %rsp",
      "mov %rdi, 8(%rsp)\n lea 5(%rdi), %rax\n add 8(%rsp), %rax\n add $24, %rsp");
FIRST(first_large_frame, "sub $4104, %rsp",
      "mov %rdi, 8(%rsp)\n lea 5(%rdi), %rax\n add 8(%rsp), %rax\n add $4104, %rsp");
FIRST(first_one_nop, "nop", "lea 5(%rdi, %rdi), %rax\n nop\n nop");
FIRST(first_five_byte_nop, "nopl 0(%rax,%rax)", "lea 5(%rdi, %rdi), %rax\n nop\n nop");
FIRST(first_clear, "xor %eax, %eax", "add %rdi, %rax\n lea 5(%rax, %rdi), %rax\n nop");
FIRST(first_copy, "mov %rdi, %rax", "add %rdi, %rax\n add $5, %rax\n nop");
FIRST(first_load, "mov (%rsi), %rax", "add %rdi, %rax\n add %rdi, %rax\n nop");
FIRST(first_test_and_branch, "test %rdi, %rdi",
      "setz %al\n movzbl %al, %eax\n lea (%rax, %rax), %rax\n"
      "neg %rax\n setnz %al\n movzbl %al, %eax\n sub %rax, %rax\n lea 5(%rdi, %rdi), %rax");
FIRST(first_compare_memory, "cmpq $5, (%rsi)",
      "sete %al\n movzbl %al, %eax\n lea 4(%rax, %rdi, 2), %rax");

// Those that change what the copy cannot do again.
FIRST(first_argument_is_loaded, "mov (%rsi), %rsi", "lea (%rsi, %rdi, 2), %rax\n nop\n nop");
FIRST(first_argument_is_cut, "{disp32} lea (%edi), %edi", "lea 5(%rdi, %rdi), %rax\n nop");
FIRST(first_argument_is_stepped, "sub $8, %rdi", "lea 21(%rdi, %rdi), %rax\n nop");
FIRST(first_argument_is_long, "mov $5, %esi", "lea (%rsi, %rdi, 2), %rax\n nop");
FIRST(first_leaves_flags, "neg %rdi",
      "mov $5, %eax\n jnc 1f\n sub %rdi, %rax\n sub %rdi, %rax\n 1:");
FIRST(first_counts, "incq firsts_hits(%rip)", "lea 5(%rdi, %rdi), %rax\n nop");
FIRST(first_red_zone, "mov %rdi, -8(%rsp)", "lea 5(%rdi), %rax\n add -8(%rsp), %rax");
FIRST(first_of_two, "lea 5(%rdi, %rdi), %rax", "");
// So short that bytes of a session may serve both ways (code/both_ways.h).
FIRST(first_both_two, "mov %edi, %edi", "lea 5(%rdi, %rdi), %rax\n nop");
FIRST(first_both_three, "movslq %edi, %rdi", "lea 5(%rdi, %rdi), %rax\n nop");
FIRST(first_both_four, "lea 8(%rdi), %rdi", "lea -11(%rdi, %rdi), %rax\n nop");

#define EACH(call)                                                                             \
  call(first_push_one_byte) call(first_push_two_bytes) call(first_push_argument)               \
      call(first_push_rsp) call(first_small_frame) call(first_large_frame) call(first_one_nop) \
          call(first_five_byte_nop) call(first_clear) call(first_copy) call(first_load)        \
              call(first_test_and_branch) call(first_compare_memory)                           \
                  call(first_argument_is_loaded) call(first_argument_is_cut)                   \
                      call(first_argument_is_stepped) call(first_argument_is_long)             \
                          call(first_leaves_flags) call(first_counts) call(first_red_zone)     \
                              call(first_of_two) call(first_both_two) call(first_both_three)   \
                                  call(first_both_four)

static uint64_t expected_of(uint64_t x) {
  return 2 * x + 5;
}

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
#define CALL(name)                         \
  {                                        \
    VICTIM_COUNT(name);                    \
    const uint64_t value = name(i, &word); \
    VICTIM_CHECK(value == expected_of(i)); \
    digest = victim_mix(digest, value);    \
  }
    EACH(CALL)
  }
  return digest;
}

// A child that calls, too.
static void fork_and_run(uint64_t rounds) {
  const pid_t child = fork();
  if (child == 0) {
    victim_run(rounds);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  victim_print("status", (uint64_t)status);
}

static void print_addresses(uint64_t unused) {
  (void)unused;
#define PRINT(name) victim_print(#name, (uint64_t) & (name));
  EACH(PRINT)
}

const struct VictimCommand victim_commands[] = {
    {"addresses", print_addresses}, {"fork", fork_and_run}, {0}};
