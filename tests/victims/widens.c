// SPDX-License-Identifier: Apache-2.0
// Victim `widens`: a function that begins requests, and whose first instruction changes the
// argument that says which, as compilers widen an int.
#include "victim.h"

VICTIM_COUNTER(begins);
VICTIM_COUNTER(works);

void begins(int request);
__asm__(
    ".text\n"
    ".globl begins\n"
    ".type begins, @function\n"
    ".balign 16\n"
    "begins:\n"
    "movslq %edi, %rdi\n"
    "mov $3, %edx\n"
    "1: mov begun(%rip), %rax\n"
    "add %rdi, %rax\n"
    "mov %rax, begun(%rip)\n"
    "sub $1, %edx\n"
    "jne 1b\n"
    "ret\n"
    ".size begins, . - begins\n");
__attribute__((used)) uint64_t begun;

VICTIM_FUNCTION void works(uint64_t request) {
  VICTIM_COUNT(works);
  begun += victim_mix(request, 3);
}

uint64_t victim_run(uint64_t rounds) {
  begun = 0;
  for (uint64_t request = 1; request <= rounds; ++request) {
    begins((int)request);
    works(request);
  }
  return begun;
}

const struct VictimCommand victim_commands[] = {{0, 0}};
