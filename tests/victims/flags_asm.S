// SPDX-License-Identifier: Apache-2.0
// Functions that take arguments and give results in flags, as only hand-written code does. Those
// that are traced are called by others here, which C can call; flags.c checks each.

        .intel_syntax noprefix
        .text

.macro function name
        .balign 16
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
.endm

.macro end_function name
        .cfi_endproc
        .size \name, . - \name
.endm

// All status flags at once: OF, and SF ZF AF PF CF as lahf has them.
.macro give_flags
        mov eax, 0
        lahf
        seto al
        movzx eax, ax
.endm

// --- Results -------------------------------------------------------------------------------------
function flag_compare         // By a comparison before ret.
        mov rax, rdi
        cmp rdi, rsi
        ret
end_function flag_compare
function flag_add             // By arithmetic: rax and the carry.
        lea rax, [rdi + rsi]
        add rdi, rsi
        mov rdx, rdi
        ret
end_function flag_add
function flag_stack           // By arithmetic, over the end of a frame.
        push rbx
        mov rbx, rdi
        sub rbx, rsi
        mov rax, rbx
        pop rbx
        ret
end_function flag_stack
function flag_set             // By the flag itself; two exits.
        mov eax, 1
        test rdi, rsi
        je 1f
        stc
        ret
1:      mov eax, 3
        clc
        ret
end_function flag_set

// --- Tail jumps ----------------------------------------------------------------------------------
function flag_jump
        mov rax, rdi
        cmp rdi, rsi
        jmp flag_pass
end_function flag_jump
function flag_jump_if
        mov rax, rdi
        cmp rdi, rsi
        ja flag_pass
        mov rdx, rsi
        ret
end_function flag_jump_if
function flag_pass            // Leaves them as they came.
        lea rax, [rax + 2 * rsi]
        mov rcx, rax
        ret
end_function flag_pass

// --- Arguments -----------------------------------------------------------------------------------
function flag_argument        // In the first instruction.
        setb al
        movzx eax, al
        lea rax, [rax + rdi]
        ret
end_function flag_argument
function flag_argument_later  // Behind others, on one way of two.
        lea rax, [rdi + rsi]
        jrcxz 1f
        lea rax, [rax + 4 * rsi]
1:      adc rax, 7
        ret
end_function flag_argument_later
function flag_dead            // Reads none that it did not write.
        xor eax, eax
        cmp rdi, rsi
        sbb rax, rdi
        ret
end_function flag_dead

// --- Callers -------------------------------------------------------------------------------------
.macro caller name, callee
function \name
        sub rsp, 8
        .cfi_adjust_cfa_offset 8
        call \callee
        lea rsp, [rsp + 8]
        .cfi_adjust_cfa_offset -8
        give_flags
        ret
end_function \name
.endm

caller call_compare, flag_compare
caller call_add, flag_add
caller call_stack, flag_stack
caller call_set, flag_set
caller call_jump, flag_jump
caller call_jump_if, flag_jump_if

function call_argument
        cmp rdi, rsi
        jmp flag_argument
end_function call_argument
function call_argument_later
        mov rcx, rdx
        cmp rdi, rsi
        jmp flag_argument_later
end_function call_argument_later

        .section .note.GNU-stack, "", @progbits
