// SPDX-License-Identifier: Apache-2.0
// The doors of the D runtime: one thunk of kDThunkSizeBytes for each number from
// kMachineAccessorBase on (abi/machine/accessors.def, then abi/machine/process.h), at the blob's
// first byte. BPF arguments are in rbx, r12, r14, r15 (r1 is the window in any case); the result is
// in rax; every other register is kept (abi/calling.h).

// Where what is (abi/slot.h, abi/arena.h; d_blob.cc compares the numbers).
#define SLOT_INDEX 32
#define HEADER 266240
#define SLOT_COUNT (HEADER + 12)
#define SLOTS_ADDRESS (HEADER + 16)
#define SLOT_STRIDE (HEADER + 24)

        .text
        .altmacro

// Calls \body(window, r2, r3, r4, r5, what was pushed). Keeps every register but rax, which has
// the answer. runtime/process/firing.cc knows the order of the pushes.
.macro  enter body
        .balign 16, 0xcc
enter_\body:
        push    %rcx
        push    %rdx
        push    %rsi
        push    %rdi
        push    %r8
        push    %r9
        push    %r10
        push    %r11
        push    %rbp
        mov     %rsp, %rbp
        and     $-16, %rsp
        mov     clew_low_address(%rip), %rdx
        mov     %gs:SLOT_INDEX(%rdx), %ecx
        cmp     SLOT_COUNT(%rdx), %ecx
        jb      1f
        xor     %ecx, %ecx
1:      imul    SLOT_STRIDE(%rdx), %rcx
        add     SLOTS_ADDRESS(%rdx), %rcx
        mov     d_window(%rip), %rdi
        add     %rcx, %rdi                // The window of this thread's slot.
        mov     %rbx, %rsi
        mov     %r12, %rdx
        mov     %r14, %rcx
        mov     %r15, %r8
        mov     %rbp, %r9
        call    \body
        mov     %rbp, %rsp
        pop     %rbp
        pop     %r11
        pop     %r10
        pop     %r9
        pop     %r8
        pop     %rdi
        pop     %rsi
        pop     %rdx
        pop     %rcx
        ret
.endm

        .section .text.entry, "ax", @progbits
        .hidden clew_d_thunks
        .globl  clew_d_thunks
clew_d_thunks:

        // Rows of thunks; the body of each is made at its first.
.macro  row body
        .ifndef enter_\body
        .pushsection .text
        enter   \body
        .popsection
        .endif
        .balign 16, 0xcc
        jmp     enter_\body
.endm
.macro  rows first, rest:vararg
        row     \first
        .ifnb   \rest
        rows    \rest
        .endif
.endm

        // MachineAccessor
#define CLEW_MACHINE_ACCESSOR(name, in_kernel, in_process, arguments) row in_process;
#include "abi/machine/accessors.def"
        // MachineProcessAccessor
        rows    d_begin, d_begin_with_registers, d_stack_arguments, d_after_clause
        rows    d_after_error, d_thread, d_clear
        // MachineBuiltin 0 to 63
        rows    d_refuse
        .rept   10
        row     d_builtin_argument
        .endr
        rows    d_refuse, d_builtin_caller, d_builtin_cpu, d_builtin_cpu
        rows    d_refuse, d_refuse, d_refuse, d_builtin_cwd, d_builtin_epid, d_builtin_errno
        rows    d_refuse, d_builtin_execname, d_refuse, d_builtin_gid, d_builtin_id, d_builtin_ipl
        rows    d_builtin_pid, d_builtin_ppid, d_builtin_probefunc, d_builtin_probemod
        rows    d_builtin_probename, d_builtin_probeprov, d_builtin_root, d_builtin_stackdepth
        rows    d_builtin_tid, d_builtin_timestamp, d_builtin_ucaller, d_builtin_uid, d_refuse
        rows    d_builtin_ustackdepth, d_builtin_vtimestamp, d_builtin_walltimestamp
        .rept   21
        row     d_refuse
        .endr
        .balign 16, 0xcc
        .hidden clew_d_thunks_end
        .globl  clew_d_thunks_end
clew_d_thunks_end:

        // abi::MachinePlace, set by the tracer in each copy before it is used.
        .hidden clew_d_place
        .globl  clew_d_place
        .hidden clew_low_address
        .globl  clew_low_address
clew_d_place:
clew_low_address:
        .quad   0
d_window:
        .quad   0
d_process:
        .quad   0

        .section .note.GNU-stack, "", @progbits
