// SPDX-License-Identifier: Apache-2.0
// Functions with switches, as compilers write them and as they do not. Each takes a number and
// gives one; those named run_… may be called with any.
#include "victim.h"

// An offset's case: movslq (rdx, index, 4) ; add ; jmp
#define SWITCH(index) movslq (%rdx,index,4), %rax; add %rdx, %rax; jmp *%rax
#define CASES(first) \
  1: mov $first, %eax; ret; 2: mov $first + 1, %eax; ret; 3: mov $first + 2, %eax; ret; \
  4: mov $first + 3, %eax; ret; 9: mov $first + 9, %eax; ret
#define OFFSETS(name) \
  .pushsection .rodata; .balign 4; name: .long 1b - name, 2b - name, 3b - name, 4b - name; \
  .popsection
// Behind a table: what leads nowhere near.
#define TABLE_END .pushsection .rodata; .long 0x7fffffff; .popsection

.text
FUNCTION(run_compared)
  cmp $3, %edi
  ja 9f
  lea compared_table(%rip), %rdx
  mov %edi, %eax
  SWITCH(%rax)
  CASES(10)
  OFFSETS(compared_table)
END(run_compared)

FUNCTION(run_below)
  cmp $4, %rdi
  jb 5f
  xor %eax, %eax
  ret
  5: lea below_table(%rip), %rdx
  SWITCH(%rdi)
  CASES(20)
  OFFSETS(below_table)
END(run_below)

FUNCTION(run_compared_copy)
  mov %rdi, %rcx
  lea compared_copy_table(%rip), %rdx
  mov %rcx, %rsi
  cmp $3, %rsi
  ja 9f
  SWITCH(%rcx)
  CASES(30)
  OFFSETS(compared_copy_table)
END(run_compared_copy)

FUNCTION(run_compared_word)
  push %rdi
  cmpl $3, (%rsp)
  ja 8f
  mov (%rsp), %eax
  pop %rcx
  lea compared_word_table(%rip), %rdx
  SWITCH(%rax)
  8: pop %rcx
  CASES(40)
  OFFSETS(compared_word_table)
END(run_compared_word)

FUNCTION(run_of_a_byte)
  movzbl %dil, %eax
  lea of_a_byte_table(%rip), %rdx
  SWITCH(%rax)
  1: mov $50, %eax
  ret
  2: mov $51, %eax
  ret
  .pushsection .rodata
  .balign 4
  of_a_byte_table:
  .rept 128
  .long 1b - of_a_byte_table, 2b - of_a_byte_table
  .endr
  .popsection
END(run_of_a_byte)

FUNCTION(run_masked)
  and $3, %edi
  lea masked_table(%rip), %rdx
  SWITCH(%rdi)
  CASES(60)
  OFFSETS(masked_table)
END(run_masked)

// A byte is compared, and that byte alone becomes the index.
FUNCTION(run_compared_byte)
  mov %edi, %eax
  cmp $3, %al
  ja 9f
  movzbl %al, %eax
  lea compared_byte_table(%rip), %rdx
  SWITCH(%rax)
  CASES(170)
  OFFSETS(compared_byte_table)
END(run_compared_byte)

// Two ways lead to the switch, and each compares.
FUNCTION(run_joined)
  test $64, %edi
  jne 5f
  mov %edi, %ecx
  cmp $3, %cl
  ja 9f
  6: lea joined_table(%rip), %rdx
  movzbl %cl, %eax
  SWITCH(%rax)
  5: mov %edi, %ecx
  and $63, %ecx
  cmp $2, %cl
  jbe 6b
  CASES(200)
  OFFSETS(joined_table)
END(run_joined)

// The same, but one of them does not.
FUNCTION(whole_joined)
  mov %edi, %ecx
  test $64, %edi
  jne 6f
  cmp $1, %cl
  ja 9f
  6: lea whole_joined_table(%rip), %rdx
  mov %ecx, %eax
  SWITCH(%rax)
  CASES(210)
  OFFSETS(whole_joined_table)
  TABLE_END
END(whole_joined)

// A loop to its own first instruction compares, a caller does not.
FUNCTION(whole_entry)
  lea whole_entry_table(%rip), %rdx
  SWITCH(%rdi)
  1: dec %esi
  cmp $1, %edi
  jbe whole_entry
  ret
  2: mov $221, %eax
  ret
  3: mov $222, %eax
  ret
  4: mov $223, %eax
  ret
  OFFSETS(whole_entry_table)
  TABLE_END
END(whole_entry)

// The whole is compared before: nothing is in its other bits.
FUNCTION(run_compared_twice)
  cmp $9, %edi
  ja 9f
  mov %edi, %eax
  cmp $200, %al
  ja 9f
  cmp $3, %al
  ja 9f
  lea compared_twice_table(%rip), %rdx
  SWITCH(%rax)
  CASES(190)
  .pushsection .rodata
  .balign 4
  compared_twice_table: .long 1b - compared_twice_table, 2b - compared_twice_table
  .long 3b - compared_twice_table, 4b - compared_twice_table, 1b + 1 - compared_twice_table
  .popsection
END(run_compared_twice)

// A byte is compared, but the whole becomes the index: as many as there are say what it is.
FUNCTION(whole_low_byte)
  cmp $1, %dil
  ja 9f
  lea low_byte_table(%rip), %rdx
  SWITCH(%rdi)
  CASES(180)
  OFFSETS(low_byte_table)
  TABLE_END
END(whole_low_byte)

// The bases of two switches stay in registers over a loop that calls.
FUNCTION(run_hoisted)
  push %rbx
  push %r12
  push %r13
  lea hoisted_table(%rip), %rbx
  lea hoisted_other(%rip), %r12
  mov %rdi, %r13
  and $63, %r13d
  xor %ecx, %ecx
  7: push %rcx
  mov %r13d, %edi
  call run_masked
  pop %rcx
  add %eax, %ecx
  mov %r13d, %esi
  and $3, %esi
  movslq (%rbx,%rsi,4), %rax
  add %rbx, %rax
  jmp *%rax
  1: add $1, %ecx
  jmp 5f
  2: add $2, %ecx
  3: add $4, %ecx
  jmp 5f
  4: add $8, %ecx
  5: mov %r13d, %edx
  shr $2, %edx
  cmp $2, %edx
  ja 6f
  movslq (%r12,%rdx,4), %rax
  add %r12, %rax
  jmp *%rax
  8: add $16, %ecx
  9: add $32, %ecx
  6: dec %r13d
  jns 7b
  mov %ecx, %eax
  pop %r13
  pop %r12
  pop %rbx
  ret
  OFFSETS(hoisted_table)
  .pushsection .rodata
  hoisted_other: .long 8b - hoisted_other, 9b - hoisted_other, 6b - hoisted_other
  .popsection
END(run_hoisted)

// One table, two names and two jumps, with different bounds.
FUNCTION(run_shared)
  test %edi, %edi
  js 6f
  cmp $2, %edi
  ja 9f
  lea shared_table(%rip), %rdx
  mov %edi, %eax
  SWITCH(%rax)
  6: and $3, %edi
  lea shared_table(%rip), %rdx
  SWITCH(%rdi)
  CASES(70)
  OFFSETS(shared_table)
END(run_shared)

// Words of 8 bytes, which the loader relocates.
FUNCTION(run_addresses)
  cmp $3, %edi
  ja 9f
  lea addresses_table(%rip), %rdx
  mov %edi, %eax
  jmp *(%rdx,%rax,8)
  CASES(80)
  .pushsection .data.rel.ro, "aw"
  .balign 8
  addresses_table: .quad 1b, 2b, 3b, 4b
  .popsection
END(run_addresses)

// The table's last entry leads to another function, as a tail call does.
FUNCTION(run_leads_out)
  cmp $1, %edi
  ja 2f
  lea leads_out_table(%rip), %rdx
  mov %edi, %eax
  SWITCH(%rax)
  2: mov $90, %eax
  ret
  .pushsection .rodata
  .balign 4
  leads_out_table: .long 2b - leads_out_table, run_masked - leads_out_table
  .popsection
END(run_leads_out)

FUNCTION(run_tail_call)
  lea run_masked(%rip), %rax
  jmp *%rax
END(run_tail_call)

// Nothing bounds the index; what stands behind the table leads elsewhere.
FUNCTION(run_unbounded_end)
  and %edi, %edi
  jns 9f
  mov %edi, %eax
  shr $31, %eax
  lea unbounded_end_table(%rip), %rdx
  SWITCH(%rax)
  CASES(100)
  .pushsection .rodata
  .balign 4
  unbounded_end_table: .long 1b - unbounded_end_table, 2b - unbounded_end_table
  .long 0x7fffffff
  .popsection
END(run_unbounded_end)

// The same, but what stands behind leads into the middle of an instruction.
FUNCTION(refused_unbounded)
  lea unbounded_table(%rip), %rdx
  SWITCH(%rdi)
  1: mov $110, %eax
  ret
  .pushsection .rodata
  .balign 4
  unbounded_table: .long 1b - unbounded_table, 1b - unbounded_table, 1b + 1 - unbounded_table
  .popsection
END(refused_unbounded)

// The comparison promises more entries than there are.
FUNCTION(refused_short_table)
  cmp $3, %edi
  ja 1f
  lea short_table(%rip), %rdx
  mov %edi, %eax
  SWITCH(%rax)
  1: mov $120, %eax
  ret
  .pushsection .rodata
  .balign 4
  short_table: .long 1b - short_table, 1b - short_table, 0x7fffffff, 0x7fffffff
  .popsection
END(refused_short_table)

FUNCTION(refused_escape)
  cmp $3, %edi
  ja 9f
  lea escape_table(%rip), %rdx
  mov %rdx, seen(%rip)
  mov %edi, %eax
  SWITCH(%rax)
  CASES(130)
  OFFSETS(escape_table)
END(refused_escape)

// It escapes on a way that leads to no switch.
FUNCTION(refused_late_escape)
  lea late_escape_table(%rip), %rdx
  cmp $3, %edi
  ja 8f
  mov %edi, %eax
  SWITCH(%rax)
  8: lea 4(%rdx), %rax
  ret
  CASES(140)
  OFFSETS(late_escape_table)
END(refused_late_escape)

FUNCTION(refused_spill)
  lea spill_table(%rip), %rdx
  push %rdx
  call run_masked
  pop %rdx
  and $3, %eax
  SWITCH(%rax)
  CASES(150)
  OFFSETS(spill_table)
END(refused_spill)

FUNCTION(refused_other_sum)
  and $3, %edi
  lea other_sum_table(%rip), %rdx
  movslq (%rdx,%rdi,4), %rax
  lea other_sum_table + 4(%rip), %rcx
  add %rcx, %rax
  jmp *%rax
  CASES(160)
  OFFSETS(other_sum_table)
END(refused_other_sum)

FUNCTION(refused_no_table)
  push %rdi
  mov seen(%rip), %rax
  jmp *%rax
END(refused_no_table)

.bss
.balign 8
seen: .skip 8
.section .note.GNU-stack, "", @progbits
