// SPDX-License-Identifier: Apache-2.0
// A program to trace whose functions change their argument by a first instruction of two, three or
// four bytes. Commands come one per line on stdin; each is answered with one line on stdout.
//
//   run N    calls each function N times -> how often each was called until now, or "wrong NAME"
#include <stdio.h>
#include <string.h>

struct Pair {
  long first;
  long second;
};

// body: rax = 2 * rdi + 5, behind the first instruction.
#define FUNCTION(name, first, body)                                                               \
  long name(const struct Pair* pair);                                                             \
  __asm__(".text\n.balign 16\n.globl " #name "\n.type " #name ", @function\n" #name               \
          ":\n"                                                                                   \
          ".cfi_startproc\n" first "\n" body "\n  ret\n.cfi_endproc\n.size " #name ", . - " #name \
          "\n")

FUNCTION(two_bytes, "mov (%rdi), %edi", "lea 5(%rdi, %rdi), %rax\n nop\n nop\n nop");
FUNCTION(three_bytes, "mov (%rdi), %rdi", "lea 5(%rdi, %rdi), %rax\n nop\n nop");
FUNCTION(four_bytes, "mov 8(%rdi), %rdi", "lea 5(%rdi, %rdi), %rax\n nop");
FUNCTION(with_padding, "mov 8(%rdi), %rdi", "lea 5(%rdi, %rdi), %eax");
FUNCTION(sign_extended, "movslq (%rdi), %rdi", "add %rdi, %rdi\n mov %rdi, %rax\n add $5, %rax");

#define EACH(call) \
  call(two_bytes) call(three_bytes) call(four_bytes) call(with_padding) call(sign_extended)

// Null, or the first function that was wrong.
static const char* call_each(long value) {
  const struct Pair pair = {value, value};
#define CALL(name) \
  if (name(&pair) != 2 * value + 5) return #name;
  EACH(CALL)
  return NULL;
}

int main(void) {
  char line[256];
  long calls = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != NULL) {
    long rounds = 0;
    if (sscanf(line, "run %ld", &rounds) != 1) break;
    const char* wrong = NULL;
    for (long i = 0; i < rounds && wrong == NULL; ++i)
      wrong = call_each(calls++ % 1000);
    if (wrong != NULL) {
      printf("wrong %s\n", wrong);
    } else {
      printf("%ld\n", calls);
    }
  }
  return 0;
}
