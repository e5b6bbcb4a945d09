// SPDX-License-Identifier: Apache-2.0
// Functions that cannot run from a copy, each for one reason, and beside them some that can.
#include "victim.h"

.text
FUNCTION(plain)
  push %rbx
  mov %edi, %ebx
  call *%rsi
  lea 1(%rbx,%rax), %eax
  pop %rbx
  ret
END(plain)

FUNCTION(no_code)
  .byte 0x06
  ret
END(no_code)

FUNCTION(undecodable)
  test %edi, %edi
  je 1f
  ret
  1: .byte 0x06
END(undecodable)

FUNCTION(kernel)
  mov $39, %eax
  syscall
  ret
END(kernel)

FUNCTION(signal_return)
  mov $15, %rax
  syscall
END(signal_return)

FUNCTION(stops)
  test %edi, %edi
  je 1f
  int3
  1: ret
END(stops)

FUNCTION(traps)
  test %edi, %edi
  je 1f
  ud2
  1: ret
END(traps)

FUNCTION(own_place)
  call 1f
  1: pop %rax
  ret
END(own_place)

FUNCTION(calls_itself)
  test %edi, %edi
  je 1f
  dec %edi
  call calls_itself
  1: ret
END(calls_itself)

FUNCTION(label)
  lea 1f(%rip), %rax
  ret
  1: nop
  ret
END(label)

FUNCTION(own_start)
  lea own_start(%rip), %rax
  ret
END(own_start)

FUNCTION(into_middle)
  test %edi, %edi
  je plain + 1
  ret
END(into_middle)

FUNCTION(outer)
  test %edi, %edi
  .globl inner
  .type inner, @function
  inner: je 1f
  inc %eax
  ret
  END(inner)
  1: ret
END(outer)

FUNCTION(switches_stack)
  mov (%rdi), %r8
  mov 8(%rdi), %r9
  mov 16(%rdi), %rdx
  mov %r8, %rsp
  mov %r9, %rbp
  jmp *%rdx
END(switches_stack)

FUNCTION(size_prefix)
  test %edi, %edi
  .byte 0x66
  jne 1f
  1: ret
END(size_prefix)

FUNCTION(address_prefix)
  .byte 0x67
  lea address_prefix(%rip), %eax
  ret
END(address_prefix)

FUNCTION(restarts)
  nop
  restart_begin: mov (%rdi), %rax
  mov %rax, (%rsi)
  restart_end: ret
  .long 0x53053053
  restart_abort: ret
END(restarts)
.pushsection __rseq_cs, "aw"
.balign 32
.long 0, 0
.quad restart_begin, restart_end - restart_begin, restart_abort
.popsection

.globl chosen
.type chosen, @gnu_indirect_function
.balign 16
chosen:
  lea plain(%rip), %rax
  ret
.size chosen, . - chosen
.section .note.GNU-stack, "", @progbits
