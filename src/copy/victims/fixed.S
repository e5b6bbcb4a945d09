// SPDX-License-Identifier: Apache-2.0
// A program at a fixed address: its switches name tables by 32 bits.
#include "victim.h"

.text
FUNCTION(_start)
  mov $3, %edi
  call run_addresses
  hlt
END(_start)

FUNCTION(run_addresses)
  cmp $2, %edi
  ja 9f
  mov %edi, %eax
  jmp *table(,%rax,8)
  1: mov $10, %eax
  ret
  2: mov $11, %eax
  ret
  3: mov $12, %eax
  ret
  9: mov $19, %eax
  ret
END(run_addresses)

// Two accesses to one table; one is of a load.
FUNCTION(run_both)
  and $1, %edi
  je 4f
  jmp *both_table(,%rdi,8)
  4: mov both_table(,%rdi,8), %rax
  jmp *%rax
  5: mov $20, %eax
  ret
  6: mov $21, %eax
  ret
END(run_both)

FUNCTION(refused_escape)
  and $1, %edi
  mov escape_table(,%rdi,8), %rax
  mov %rax, %rdx
  test %rdx, %rdx
  jmp *%rax
  7: mov $30, %eax
  ret
  8: mov $31, %eax
  ret
END(refused_escape)

.section .rodata
.balign 8
table: .quad 1b, 2b, 3b
both_table: .quad 5b, 6b
escape_table: .quad 7b, 8b
.section .note.GNU-stack, "", @progbits
