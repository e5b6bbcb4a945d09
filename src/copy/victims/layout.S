// SPDX-License-Identifier: Apache-2.0
// Functions whose copies cannot be laid out as they are. What is named kept_…
// cannot be copied; run_… may be called with any number.
#include "victim.h"

// It makes a system call, of a negative number alone.
#define KEPT(name, value) \
  FUNCTION(name) test %edi, %edi; jns 1f; syscall; 1: mov $value, %eax; ret; END(name)

.text
KEPT(kept_first, 1)

// Short jumps to what stays where it is.
FUNCTION(run_short_out)
  test %edi, %edi
  je kept_second
  jmp kept_second
END(run_short_out)

KEPT(kept_second, 2)

// It reaches its end shortly only as long as the jump in between is short.
FUNCTION(run_grows)
  test %edi, %edi
  je 1f
  .rept 13
  nopw 0x200(%rax,%rax)
  .endr
  nopl (%rax)
  nop
  test %esi, %esi
  jmp kept_third
  1: xor %eax, %eax
  ret
END(run_grows)

KEPT(kept_third, 4)

FUNCTION(run_counts)
  mov %edi, %ecx
  and $3, %ecx
  inc %ecx
  xor %eax, %eax
  1: inc %eax
  loop 1b
  jrcxz kept_fourth
  ret
END(run_counts)

FUNCTION(run_counts_short)
  mov %edi, %ecx
  mov %edi, %eax
  jecxz kept_fourth
  ret
END(run_counts_short)

KEPT(kept_fourth, 5)

// Nobody gets to what stands between its two blocks.
FUNCTION(run_has_gap)
  mov %edi, %eax
  test %edi, %edi
  jne 1f
  ret
  .fill 43, 1, 0xcc
  1: mov $6, %eax
  ret
END(run_has_gap)

// It runs on into what is not copied.
FUNCTION(run_runs_on)
  lea 7(%rdi), %eax
  nopl 4(%rax,%rax)
  nopl 4(%rax,%rax)
  nopl (%rax)
END(run_runs_on)
KEPT(kept_fifth, 8)

// The call does not come back.
FUNCTION(ends_in_call)
  test %edi, %edi
  js 1f
  mov $9, %eax
  ret
  1: call never
END(ends_in_call)

FUNCTION(never)
  ud2
END(never)

// Reads the module and itself by rip.
FUNCTION(run_reads)
  mov word(%rip), %eax
  add word(%rip), %eax
  cmpl $3, word(%rip)
  lea run_reads(%rip), %rdx
  ret
END(run_reads)

FUNCTION(run_last)
  test %edi, %edi
  je kept_last
  jmp kept_last
END(run_last)

KEPT(kept_last, 10)

.section .rodata
word: .long 3
.section .note.GNU-stack, "", @progbits
