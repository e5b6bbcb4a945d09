// SPDX-License-Identifier: Apache-2.0
// Test support: the two crossings between C++ and a body.

        .intel_syntax noprefix
        .text

// The low halves of xmm0 to xmm7 from, and to, eight words in memory.
        .macro  load_vectors from:vararg
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movq    xmm\n, [\from + 8*\n]
        .endr
        .endm
        .macro  store_vectors to:vararg
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movq    [\to + 8*\n], xmm\n
        .endr
        .endm

// uint64_t clew_native_enter(uint64_t stub, uint64_t registers[16], const uint64_t arguments[18])
// Loads all registers but rsp from `registers`, lays the ten stack arguments out, puts the other
// eight into the low halves of xmm0 to xmm7, calls the stub, and stores all general registers.
// Returns the address at which the stub found its return address.
        .globl  clew_native_enter
        .type   clew_native_enter, @function
clew_native_enter:
        push    rbp
        push    rbx
        push    r12
        push    r13
        push    r14
        push    r15
        push    rsi
        load_vectors rdx + 80
        mov     ecx, 10
1:      push    qword ptr [rdx + 8*rcx - 8]
        dec     rcx
        jnz     1b
        mov     [rsp - 16], rdi         // In the red zone; the call reads it before it pushes.
        mov     rax, [rsi]
        mov     rcx, [rsi + 8]
        mov     rdx, [rsi + 16]
        mov     rbx, [rsi + 24]
        mov     rbp, [rsi + 40]
        mov     rdi, [rsi + 56]
        mov     r8, [rsi + 64]
        mov     r9, [rsi + 72]
        mov     r10, [rsi + 80]
        mov     r11, [rsi + 88]
        mov     r12, [rsi + 96]
        mov     r13, [rsi + 104]
        mov     r14, [rsi + 112]
        mov     r15, [rsi + 120]
        mov     rsi, [rsi + 48]
        call    qword ptr [rsp - 16]
        mov     [rsp - 16], rsi
        mov     rsi, [rsp + 80]
        mov     [rsi], rax
        mov     [rsi + 8], rcx
        mov     [rsi + 16], rdx
        mov     [rsi + 24], rbx
        mov     [rsi + 40], rbp
        mov     [rsi + 56], rdi
        mov     [rsi + 64], r8
        mov     [rsi + 72], r9
        mov     [rsi + 80], r10
        mov     [rsi + 88], r11
        mov     [rsi + 96], r12
        mov     [rsi + 104], r13
        mov     [rsi + 112], r14
        mov     [rsi + 120], r15
        mov     rax, [rsp - 16]
        mov     [rsi + 48], rax
        lea     rax, [rsp - 8]
        add     rsp, 88
        pop     r15
        pop     r14
        pop     r13
        pop     r12
        pop     rbx
        pop     rbp
        ret
        .size   clew_native_enter, . - clew_native_enter

// The thunk behind every accessor entry: rax = the call record, BPF r1..r5 as abi/calling.h says.
// Calls [record](record, arguments) and keeps every register but rax; of vectors, what bodies read.
        .globl  clew_native_thunk
        .type   clew_native_thunk, @function
clew_native_thunk:
        push    rbp
        mov     rbp, rsp
        push    rcx
        push    rdx
        push    rsi
        push    rdi
        push    r8
        push    r9
        push    r10
        push    r11
        sub     rsp, 64
        store_vectors rsp
        push    r15                     // r5
        push    r14                     // r4
        push    r12                     // r3
        push    rbx                     // r2
        push    r11                     // r1
        mov     rdi, rax
        mov     rsi, rsp
        and     rsp, -16
        call    qword ptr [rdi]
        lea     rsp, [rbp - 128]
        load_vectors rsp
        add     rsp, 64
        pop     r11
        pop     r10
        pop     r9
        pop     r8
        pop     rdi
        pop     rsi
        pop     rdx
        pop     rcx
        pop     rbp
        ret
        .size   clew_native_thunk, . - clew_native_thunk

// The same, but change what a call with one argument may change, and one with three.
        .globl  clew_native_thunk_of_records
        .type   clew_native_thunk_of_records, @function
clew_native_thunk_of_records:
        call    clew_native_thunk
        mov     r10, 0x0bad0bad0bad0bad
        mov     r11, r10
        ret
        .size   clew_native_thunk_of_records, . - clew_native_thunk_of_records

        .globl  clew_native_thunk_of_three
        .type   clew_native_thunk_of_three, @function
clew_native_thunk_of_three:
        call    clew_native_thunk_of_records
        mov     rbx, r10
        mov     r12, r10
        ret
        .size   clew_native_thunk_of_three, . - clew_native_thunk_of_three

// And what C code may change.
        .globl  clew_native_thunk_of_c
        .type   clew_native_thunk_of_c, @function
clew_native_thunk_of_c:
        call    clew_native_thunk_of_three
        mov     rcx, r10
        mov     rdx, r10
        mov     rsi, r10
        mov     rdi, r10
        mov     r8, r10
        mov     r9, r10
        ret
        .size   clew_native_thunk_of_c, . - clew_native_thunk_of_c

        .section .note.GNU-stack, "", @progbits
