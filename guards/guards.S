/* SPDX-License-Identifier: Apache-2.0 */
/* What programs are linked with that a compiler has made ready for `clew record`, by
 * -fsanitize-coverage=trace-pc-guard (clang) or trace-pc (clang, gcc): the functions that it calls.
 * They do nothing. A recorder leads the first two to a probe; they are as long as a jump.
 *
 * Each file has its own: what another file brings is never called. The note says where they are,
 * also in a file whose symbols are gone. */

    .macro callback name
    .globl \name
    .hidden \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    .byte 0x0f, 0x1f, 0x44, 0x00, 0x00 /* nop */
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    callback __sanitizer_cov_trace_pc_guard
    callback __sanitizer_cov_trace_pc
    callback __sanitizer_cov_trace_pc_guard_init
    callback __sanitizer_cov_pcs_init

    .section .note.clew.guards, "a", @note
    .p2align 2
    .long 5     /* Bytes of the name, */
    .long 8     /* and of what follows it. */
    .long 1     /* Type: where callbacks are, from each word on. */
    .asciz "Clew"
    .p2align 2
    .long __sanitizer_cov_trace_pc_guard - .
    .long __sanitizer_cov_trace_pc - .

    .section .note.GNU-stack, "", @progbits
