// SPDX-License-Identifier: Apache-2.0
// Functions whose tiling is known by hand. Nobody runs them.
  .macro FUNCTION name
  .globl \name
  .hidden \name
  .type \name, @function
  \name:
  .cfi_startproc
  .endm
  .macro END name
  .cfi_endproc
  .size \name, . - \name
  .endm

  .text
  FUNCTION leaf
  mov %edi, %eax
  ret
  END leaf

// Both sides come to the same return.
  FUNCTION diamond
  test %edi, %edi
  je 1f
  inc %eax
  1: ret
  END diamond

// The side that does not come back has the bit.
  FUNCTION fatal
  test %edi, %edi
  jne 1f
  ud2
  1: ret
  END fatal

// Which loop it is says the next record.
  FUNCTION two_loops
  test %edi, %edi
  je 2f
  1: call *%rax
  jmp 1b
  2: call *%rcx
  jmp 2b
  END two_loops

// One way round, two exits.
  FUNCTION scan
  xor %eax, %eax
  1: cmpb $0, (%rdi)
  je 2f
  inc %rdi
  cmp %rsi, %rdi
  jb 1b
  inc %eax
  2: ret
  END scan

  FUNCTION tail_if
  test %edi, %edi
  je leaf
  ret
  END tail_if

// Nothing is decided behind the call, so nothing is recorded there.
  FUNCTION calls_leaf
  push %rbx
  call leaf
  pop %rbx
  ret
  END calls_leaf

// Here something is.
  FUNCTION asks_leaf
  push %rbx
  call leaf
  test %eax, %eax
  je 1f
  inc %eax
  1: pop %rbx
  ret
  END asks_leaf

// What it jumps to may call back, so its callers record where they go on.
  FUNCTION leaves_by_jump
  jmp puts@plt
  END leaves_by_jump

  FUNCTION calls_jump
  push %rbx
  call leaves_by_jump
  pop %rbx
  ret
  END calls_jump

// As a caller of setjmp: control may come back behind the first call while the second one runs.
  FUNCTION calls_out
  push %rbx
  call puts@plt
  call calls_jump
  pop %rbx
  ret
  END calls_out

// The C library's memcpy calls nobody.
  FUNCTION copies
  push %rbx
  call memcpy@plt
  test %eax, %eax
  je 1f
  inc %eax
  1: pop %rbx
  ret
  END copies

  FUNCTION copies_last
  jmp memcpy@plt
  END copies_last

  FUNCTION calls_copies_last
  push %rbx
  call copies_last
  pop %rbx
  ret
  END calls_copies_last

// As libraries call what they export.
  .globl exported
  .type exported, @function
  exported:
  .cfi_startproc
  ret
  END exported

  FUNCTION calls_exported
  push %rbx
  call exported@plt
  pop %rbx
  ret
  END calls_exported

  FUNCTION again
  dec %edi
  je again
  dec %esi
  je again
  push %rbx
  call again
  pop %rbx
  ret
  END again

// More decisions than a record has bits.
  FUNCTION fourteen
  .rept 14
  test %edi, %edi
  je 1f
  inc %eax
  1: shr %edi
  .endr
  ret
  END fourteen

// All registers but rax are wanted behind the branches, and the flags of the first one, too.
  FUNCTION full
  test %rdi, %rdi
  jg 1f
  je 1f
  lea 1(%rcx), %rcx
  1: lea (%rcx,%rdx), %rax
  add %rsi, %rax
  add %rdi, %rax
  add %r8, %rax
  add %r9, %rax
  add %r10, %rax
  add %r11, %rax
  ret
  END full

// Ten cases that go on alike.
  FUNCTION cases
  cmp $9, %edi
  ja 2f
  lea 1f(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  add %rdx, %rax
  jmp *%rax
  3:
  .set case, 0
  .rept 10
  .byte 0xb8, case, 0, 0, 0  // mov $case, %eax
  jmp 2f
  .set case, case + 1
  .endr
  2: ret
  END cases
  .section .rodata
  .balign 4
  1:
  .set case, 0
  .rept 10
  .long 3b - 1b + 7 * case
  .set case, case + 1
  .endr

  .section .note.GNU-stack, "", @progbits
