// SPDX-License-Identifier: Apache-2.0
// Functions that read the address they return to, those that call them, and others that look alike.
#include "victim.h"

.intel_syntax noprefix
.text

FUNCTION(reads_at_entry)
        mov rax, [rsp]
        ret
END(reads_at_entry)

FUNCTION(reads_below)
        sub rsp, 24
        mov rax, [rsp + 24]
        add rsp, 24
        ret
END(reads_below)

FUNCTION(reads_by_frame)
        push rbp
        mov rbp, rsp
        push rbx
        mov rax, [rbp + 8]
        pop rbx
        pop rbp
        ret
END(reads_by_frame)

FUNCTION(takes_it_off)
        pop rax
        jmp rax
END(takes_it_off)

FUNCTION(reads_a_local)
        sub rsp, 24
        mov [rsp + 8], rdi
        mov rax, [rsp + 8]
        add rsp, 24
        ret
END(reads_a_local)

FUNCTION(reads_an_argument)
        push rbp
        mov rbp, rsp
        mov rax, [rbp + 16]
        add rax, [rsp + 24]
        pop rbp
        ret
END(reads_an_argument)

FUNCTION(leaves_by_a_jump)
        xor edi, edi
        jmp reads_below
END(leaves_by_a_jump)

FUNCTION(calls_who_leaves)
        sub rsp, 8
        call leaves_by_a_jump
        add rsp, 8
        ret
END(calls_who_leaves)

FUNCTION(calls_three)
        sub rsp, 8
        call reads_at_entry
        call reads_by_frame
        call takes_it_off
        add rsp, 8
        ret
END(calls_three)

FUNCTION(calls_others)
        sub rsp, 8
        call reads_a_local
        call reads_an_argument
        call calls_three
        add rsp, 8
        ret
END(calls_others)
