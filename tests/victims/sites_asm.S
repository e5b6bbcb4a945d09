// SPDX-License-Identifier: Apache-2.0
// Functions whose first bytes are hard to displace: too short, packed, jumped into, relative to
// rip, or asking for their own address. sites.c calls and checks each of them.

        .intel_syntax noprefix
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

// --- Packed: 1 to 3 bytes each, no padding between neighbours, every neighbour traced too --------
        .balign 16
function packed_ret_a
        ret
end_function packed_ret_a
function packed_zero_a
        xor eax, eax
        ret
end_function packed_zero_a
function packed_load_a
        mov eax, [rdi]
        ret
end_function packed_load_a
function packed_ret_b
        ret
end_function packed_ret_b
function packed_ret_c
        ret
end_function packed_ret_c
function packed_load_b
        mov eax, [rdi]
        ret
end_function packed_load_b
function packed_zero_b
        xor eax, eax
        ret
end_function packed_zero_b
function packed_long          // The neighbour that has room.
        lea rax, [rdi + rsi * 4 + 17]
        ret
end_function packed_long

// --- Loop heads inside the first five bytes: sum of 1..rdi ------------------------------------
        .balign 16
function loop_at_0            // The back edge reaches the entry itself.
        add qword ptr [rsi], rdi
        dec rdi
        jnz loop_at_0
        mov rax, [rsi]
        ret
end_function loop_at_0
        .balign 16
function loop_at_1
        cld                   // fc
1:      add [rsi], rdi
        dec rdi
        jnz 1b
        mov rax, [rsi]
        ret
end_function loop_at_1
        .balign 16
function loop_at_2
        xor eax, eax          // 31 c0
1:      add rax, rdi
        dec rdi
        jnz 1b
        ret
end_function loop_at_2
        .balign 16
function loop_at_3
        mov rax, [rsi]        // 48 8b 06
1:      add rax, rdi
        dec rdi
        jnz 1b
        ret
end_function loop_at_3
        .balign 16
function loop_at_4
        mov rax, [rsi + 8]    // 48 8b 46 08
1:      add rax, rdi
        dec rdi
        jnz 1b
        ret
end_function loop_at_4

// --- Another function jumps to entry + 3 --------------------------------------------------------
        .balign 16
function jumped_into
        mov rax, rdi          // 48 89 f8
.Ljumped_into_inside:
        add rax, 5            // 48 83 c0 05
        imul rax, rax, 3
        ret
end_function jumped_into
        .balign 16
function jumps_into_other
        lea rax, [rdi + rdi]
        jmp .Ljumped_into_inside
end_function jumps_into_other

// --- rip-relative operands in the window, in every shape ----------------------------------------
        .balign 16
function rip_lea
        lea rax, [rip + rip_word]
        mov rax, [rax]
        ret
end_function rip_lea
        .balign 16
function rip_compare          // The immediate follows the displacement.
        cmp byte ptr [rip + rip_byte], 0x5a
        sete al
        movzx eax, al
        ret
end_function rip_compare
        .balign 16
function rip_push
        push qword ptr [rip + rip_word]
        .cfi_adjust_cfa_offset 8
        pop rax
        .cfi_adjust_cfa_offset -8
        ret
end_function rip_push
        .balign 16
function rip_jump             // A tail call through memory: the whole function.
        jmp qword ptr [rip + rip_tail_pointer]
end_function rip_jump
        .balign 16
function rip_jump_target
        lea rax, [rdi + 1000]
        ret
end_function rip_jump_target
        .balign 16
function rip_call             // Its return address lies in the window's neighbourhood.
        call qword ptr [rip + rip_call_pointer]
        add rax, 1
        ret
end_function rip_call
        .balign 16
function rip_call_target
        lea rax, [rdi + 2000]
        ret
end_function rip_call_target
        .balign 16
function rip_multiply         // A four-byte immediate after the displacement.
        imul rax, qword ptr [rip + rip_word], 100000
        ret
end_function rip_multiply
        .balign 16
function rip_exchange         // rdi = expected, rsi = new; returns what was there.
        mov rax, rdi
        lock cmpxchg qword ptr [rip + rip_shared], rsi
        ret
end_function rip_exchange
        .balign 16
function rip_vector           // EVEX; only called where the CPU has AVX-512. rdi = 64 bytes.
        vmovups zmm0, [rip + rip_vector_data]
        vmovups [rdi], zmm0
        vzeroupper
        ret
end_function rip_vector

// --- Asking for their own address ---------------------------------------------------------------
        .balign 16
function own_address_by_call  // call next; pop rax
        call 1f
        .cfi_adjust_cfa_offset 8
        .globl own_address_by_call_next
own_address_by_call_next:
1:      pop rax
        .cfi_adjust_cfa_offset -8
        ret
end_function own_address_by_call
        .balign 16
function own_address_by_callee
        call read_return_address
        .globl own_address_by_callee_next
own_address_by_callee_next:
        nop
        ret
end_function own_address_by_callee
        .balign 16
function read_return_address
        mov rax, [rsp]
        ret
end_function read_return_address

// --- A jump table that targets entry + 2 --------------------------------------------------------
        .balign 16
function table_into_window    // rdi = turns; each turn goes back through the table.
        xor eax, eax          // 31 c0
.Ltable_inside:
        add rax, rdi          // entry + 2
        dec rdi
        lea rdx, [rip + table_of_targets]
        xor ecx, ecx
        test rdi, rdi
        setg cl
        movsxd rcx, dword ptr [rdx + rcx * 4]
        add rcx, rdx
        jmp rcx
.Ltable_done:
        ret
end_function table_into_window

        .section .rodata
        .balign 4
table_of_targets:
        .long .Ltable_done - table_of_targets
        .long .Ltable_inside - table_of_targets

        .data
        .balign 64
rip_vector_data:
        .rept 8
        .quad 0x1122334455667788
        .endr
        .globl rip_word
rip_word:
        .quad 0x123456789
rip_byte:
        .byte 0x5a
        .balign 8
        .globl rip_shared
rip_shared:
        .quad 0
        .section .data.rel.local, "aw"
        .balign 8
rip_tail_pointer:
        .quad rip_jump_target
rip_call_pointer:
        .quad rip_call_target

        .section .note.GNU-stack, "", @progbits
