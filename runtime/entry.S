// SPDX-License-Identifier: Apache-2.0
// The doors of the blob: for every session a row of thunks, kThunksPerSession of kThunkSizeBytes
// each, at the blob's first byte (runtime/blob.h has the numbers). A thunk loads the session's
// number and jumps to the common part, which saves what C code may change. No more of the stack,
// which is the program's: the C code is compiled for one that is aligned to 8, and by GCC so that
// it changes rbx and r12, too, without saving them.
//
//   index 0..18   accessor of that number: BPF arguments in r11, rbx, r12, r14, r15; result in rax;
//                 what may change is in abi/calling.h
//   index 19..24  the sparing doors of accessors 7 to 12
//   index 25      claim: r10 is free; answers in ZF (0 = run, ZF clear) and r10
//   index 26      busy:  the same, for a guarded probe that found the slot busy
//   index 27      the loader's hook: r10 is free, no answer

#define COOKIE_OFFSET 2048
#define MUTED_OFFSET 2056

        .section .text.entry, "ax", @progbits
        .hidden clew_thunks
        .globl  clew_thunks
clew_thunks:

.macro  accessor_thunk target
        .balign 16, 0xcc
        mov     $session, %eax
        jmp     \target
.endm
.macro  stub_thunk target
        .balign 16, 0xcc
        mov     $session, %r10d
        jmp     \target
.endm

session = 0
.rept 8
        accessor_thunk answer_zero        // Time: inline code, never called
        accessor_thunk answer_zero        // Cpu
        accessor_thunk answer_zero        // BitLength
        accessor_thunk divide_unsigned
        accessor_thunk modulo_unsigned
        accessor_thunk divide_signed
        accessor_thunk modulo_signed
        accessor_thunk try_read
        accessor_thunk try_read_string
        accessor_thunk table_find
        accessor_thunk record_put
        accessor_thunk record_take
        accessor_thunk record_drop
        accessor_thunk record_take_left
        accessor_thunk walk_stack
        accessor_thunk walk_within
        accessor_thunk walk_left
        accessor_thunk context_open
        accessor_thunk context_act
        accessor_thunk try_read_sparing
        accessor_thunk try_read_string_sparing
        accessor_thunk table_find_sparing
        accessor_thunk record_put_sparing
        accessor_thunk record_take_sparing
        accessor_thunk record_drop_sparing
        stub_thunk claim
        stub_thunk busy
        stub_thunk loader
session = session + 1
.endr

        // Set by the tracer in each copy of the blob, before the copy is used.
        .balign 16, 0xcc
        .hidden clew_low_address
        .globl  clew_low_address
clew_low_address:
        .long   0

        // For remote system calls. `restorer` is what a signal frame returns to.
        .balign 16, 0xcc
        .globl  clew_remote_call
        .hidden clew_remote_call
clew_remote_call:
        syscall
        ret
        .balign 16, 0xcc
        .globl  clew_restorer
        .hidden clew_restorer
clew_restorer:
        mov     $15, %rax
        syscall

        .text

// The registers of C's arguments, which a body keeps.
.macro  push_arguments
        push    %rcx
        push    %rdx
        push    %rsi
        push    %rdi
        push    %r8
        push    %r9
.endm
.macro  pop_arguments
        pop     %r9
        pop     %r8
        pop     %rdi
        pop     %rsi
        pop     %rdx
        pop     %rcx
.endm

// Calls \body with the session in edi. Changes rax, which has the answer, r10, r11, rbx and r12.
.macro  call_accessor body
        push_arguments
        mov     %eax, %edi
        mov     %r11, %rsi
        mov     %rbx, %rdx
        mov     %r12, %rcx
        call    \body
        pop_arguments
        ret
.endm

// The same with one argument. Changes rax, r10 and r11.
.macro  call_record_accessor body
        push    %rbx
        push    %r12
        push_arguments
        mov     %eax, %edi
        mov     %r11, %rsi
        call    \body
        pop_arguments
        pop     %r12
        pop     %rbx
        ret
.endm

// rdi = a WalkCall (runtime/walk_stack.cc).
.macro  push_walk_call
        push    %r15
        push    %r14
        push    %r12
        push    %rbx
        push    %r11
        push    %rax
        mov     %rsp, %rdi
.endm

// The numbers are those of WalkFrom.
.macro  walk_from_caller from
        push_arguments
        push_walk_call
        mov     $\from, %esi
        call    clew_walk_stack
        add     $48, %rsp
        pop_arguments
        ret
.endm

        .balign 16, 0xcc
answer_zero:
        xor     %eax, %eax
        ret

        .balign 16, 0xcc
divide_unsigned:
        mov     %r11, %rax
        test    %rbx, %rbx
        jz      answer_zero
        push    %rdx
        xor     %edx, %edx
        div     %rbx
        pop     %rdx
        ret

        .balign 16, 0xcc
modulo_unsigned:
        mov     %r11, %rax
        test    %rbx, %rbx
        jz      1f
        push    %rdx
        xor     %edx, %edx
        div     %rbx
        mov     %rdx, %rax
        pop     %rdx
1:      ret

        // INT64_MIN / -1 would trap: x / -1 is a negation, which wraps as it should.
        .balign 16, 0xcc
divide_signed:
        mov     %r11, %rax
        test    %rbx, %rbx
        jz      answer_zero
        cmp     $-1, %rbx
        je      1f
        push    %rdx
        cqo
        idiv    %rbx
        pop     %rdx
        ret
1:      neg     %rax
        ret

        .balign 16, 0xcc
modulo_signed:
        mov     %r11, %rax
        test    %rbx, %rbx
        jz      1f
        cmp     $-1, %rbx
        je      answer_zero
        push    %rdx
        cqo
        idiv    %rbx
        mov     %rdx, %rax
        pop     %rdx
1:      ret

        .balign 16, 0xcc
try_read:
        call_accessor clew_try_read
        .balign 16, 0xcc
try_read_string:
        call_accessor clew_try_read_string
        .balign 16, 0xcc
table_find:
        call_accessor clew_table_find
        .balign 16, 0xcc
record_put:
        call_record_accessor clew_record_put
        .balign 16, 0xcc
record_take:
        call_record_accessor clew_record_take
        .balign 16, 0xcc
record_drop:
        call_record_accessor clew_record_drop
        .balign 16, 0xcc
record_take_left:
        call_record_accessor clew_record_take_left
        .balign 16, 0xcc
walk_stack:
        walk_from_caller 0
        .balign 16, 0xcc
walk_left:
        walk_from_caller 2
        .balign 16, 0xcc
walk_within:
        push_walk_call                    // Below the return address and what the stub has saved.
        mov     $1, %esi
        call    clew_walk_stack
        add     $48, %rsp
        ret

        .balign 16, 0xcc
context_open:
        call_accessor clew_context_open
        .balign 16, 0xcc
context_act:
        call_accessor clew_context_act

// The same for a body whose stub has saved what C code changes.
.macro  spare_accessor body
        mov     %eax, %edi
        mov     %r11, %rsi
        mov     %rbx, %rdx
        mov     %r12, %rcx
        jmp     \body
.endm

        .balign 16, 0xcc
try_read_sparing:
        spare_accessor clew_try_read
        .balign 16, 0xcc
try_read_string_sparing:
        spare_accessor clew_try_read_string
        .balign 16, 0xcc
table_find_sparing:
        spare_accessor clew_table_find
        .balign 16, 0xcc
record_put_sparing:
        spare_accessor clew_record_put
        .balign 16, 0xcc
record_take_sparing:
        spare_accessor clew_record_take
        .balign 16, 0xcc
record_drop_sparing:
        spare_accessor clew_record_drop

// Calls \body with the session in edi and the stub's rsp in rsi. Keeps every register but r10.
.macro  call_stub body
        push    %rax
        push    %rbx
        push    %rcx
        push    %rdx
        push    %rsi
        push    %rdi
        push    %r8
        push    %r9
        push    %r11
        push    %r12
        mov     %r10d, %edi
        lea     88(%rsp), %rsi            // Above 10 pushes and the return address.
        call    \body
        mov     %rax, %r10
        pop     %r12
        pop     %r11
        pop     %r9
        pop     %r8
        pop     %rdi
        pop     %rsi
        pop     %rdx
        pop     %rcx
        pop     %rbx
        pop     %rax
        test    %r10, %r10
        ret
.endm

        // A muted child comes here at every hit; it leaves again at once.
        .balign 16, 0xcc
claim:
        push    %rax
        mov     clew_low_address(%rip), %eax
        cmpl    $0, MUTED_OFFSET(%rax)
        pop     %rax
        je      1f
        xor     %r10d, %r10d
        ret
        .balign 16, 0xcc
1:
        call_stub clew_claim_slot
        .balign 16, 0xcc
busy:
        call_stub clew_busy_slot
        .balign 16, 0xcc
loader:
        call_stub clew_loader_changed

        .section .note.GNU-stack, "", @progbits
