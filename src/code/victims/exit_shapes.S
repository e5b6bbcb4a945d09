// SPDX-License-Identifier: Apache-2.0
// Functions whose exits have no bytes of their own to spare: a ret that branches lead to, without
// padding behind it, and functions that run on into the next one. Each is `long f(long, long)`.

        .text

.macro function name
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
.endm

.macro end_function name
        .cfi_endproc
        .size \name, . - \name
.endm

        .balign 64
        .globl exit_shapes
exit_shapes:

// A ret behind a tail jump.
function shape_early
        xor     %eax, %eax
        test    %rdi, %rdi
        je      1f
        lea     (%rsi,%rdi), %rdi
        jmp     shape_target
1:      ret
end_function shape_early

// The loop's branch runs on into the ret.
function shape_loop
        mov     %rsi, %rax
        and     $15, %edi
1:      test    %edi, %edi
        je      2f
        add     %rsi, %rax
        dec     %edi
        jne     1b
2:      ret
end_function shape_loop

// A pop in front of the ret, and a branch over both.
function shape_pop
        mov     %rsi, %rax
        test    %rdi, %rdi
        js      1f
        push    %rbx
        mov     %rdi, %rbx
        imul    %rbx, %rax
        add     %rbx, %rax
        pop     %rbx
1:      ret
end_function shape_pop

// Branches that have no long form.
function shape_count
        mov     %rdi, %rcx
        and     $7, %ecx
        mov     %rsi, %rax
        jrcxz   1f
2:      add     %rdi, %rax
        loop    2b
        neg     %rax
1:      ret
end_function shape_count

// A branch to its own next instruction: one exit on each side of it.
function shape_both
        lea     (%rdi,%rsi), %rax
        cmp     %rdi, %rsi
        jg      1f
1:      ret
end_function shape_both

// A jump to the ret, and one byte more in it.
function shape_jump
        test    %rdi, %rdi
        js      2f
        lea     (%rdi,%rsi,4), %rax
        jmp     1f
2:      mov     %rdi, %rax
        sub     %rsi, %rax
        jmp     shape_target
1:      rep ret
end_function shape_jump

// The exits of these three are the bytes between a branch target and the ret.
function shape_zero
        test    %rdi, %rdi
        js      1f
        lea     5(%rdi), %rax
        cmp     %rsi, %rdi
        jge     1f
        imul    %rsi, %rax
        jmp     shape_target
1:      xor     %eax, %eax
        ret
end_function shape_zero

function shape_frame
        push    %rbx
        mov     %rsi, %rbx
        test    %rdi, %rdi
        mov     %rbx, %rax
        je      1f
        imul    %rdi, %rax
        sub     %rbx, %rax
1:      pop     %rbx
        ret
end_function shape_frame

function shape_address
        mov     %rdi, %rax
        test    %rsi, %rsi
        js      2f
        add     %rsi, %rax
        jmp     1f
2:      sub     %rsi, %rax
        sub     $77, %rax
        jmp     1f
1:      bswap   %eax
        ret
end_function shape_address

// Three that run on: with a tail jump on the other side, with nops in between, and with neither.
function shape_checked
        cmp     %rsi, %rdi
        ja      shape_target
end_function shape_checked
function shape_unchecked
        lea     3(%rdi,%rsi,2), %rax
        ret
end_function shape_unchecked

function shape_padded
        mov     %rsi, %rax
        xchg    %rsi, %rdi
end_function shape_padded
        .balign 16
function shape_behind
        sub     %rdi, %rax
        add     %rsi, %rax
end_function shape_behind

function shape_target
        lea     11(%rdi,%rdi,2), %rax
        ret
end_function shape_target
        .globl exit_shapes_end
exit_shapes_end:

        .section .note.GNU-stack, "", @progbits
