// SPDX-License-Identifier: Apache-2.0
// The functions that hot_loop calls: empty ones with different first instructions (what a kernel
// uprobe costs depends on it), and ten thousand more to be traced beside the one that is called.

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

// What a compiler makes of an empty function without optimisation.
.macro empty_function name
function \name
        push rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        mov rbp, rsp
        nop
        pop rbp
        .cfi_def_cfa rsp, 8
        ret
end_function \name
.endm

empty_function empty_frame
empty_function empty_memory

// With optimisation, and one instruction of its own.
function empty_leaf
        lea rax, [rdi + 1]
        ret
end_function empty_leaf

// Five bytes of nothing first: the kindest site there is, also for a kernel uprobe.
function empty_nop
        nop dword ptr [rax + rax + 0]
        ret
end_function empty_nop

// What a probe with time stamps cannot do without: empty_frame with one or two rdtsc in it.
.macro timed_function name, stamps
function \name
        push rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        mov rbp, rsp
.rept \stamps
        rdtsc
.endr
        nop
        pop rbp
        .cfi_def_cfa rsp, 8
        ret
end_function \name
.endm

timed_function one_stamp, 1
timed_function two_stamps, 2

// many_0000 to many_9999.
.irp a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
.irp b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
.irp c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
.irp d, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
empty_function many_\a\b\c\d
.endr
.endr
.endr
.endr

        .section .note.GNU-stack, "", @progbits
