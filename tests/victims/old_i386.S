// SPDX-License-Identifier: Apache-2.0
// Victim `old_i386`: a 32-bit program, which Clew does not trace. It says so, and waits for its
// input to end.
        .globl _start
        .section .rodata
ready:  .ascii "ready\n"
        .bss
byte:   .zero 4
        .text
        .type work, @function
work:   movl $4, %eax
        ret
        .size work, . - work
        .type _start, @function
_start: call work               // write(1, ready, 6)
        movl $1, %ebx
        movl $ready, %ecx
        movl $6, %edx
        int $0x80
1:      movl $3, %eax           // read(0, byte, 1) until there is no more
        xorl %ebx, %ebx
        movl $byte, %ecx
        movl $1, %edx
        int $0x80
        cmpl $0, %eax
        jg 1b
        movl $1, %eax           // exit(0)
        xorl %ebx, %ebx
        int $0x80
        .size _start, . - _start
        .section .note.GNU-stack, "", @progbits
