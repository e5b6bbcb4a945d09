// SPDX-License-Identifier: Apache-2.0
// What a compiler calls in each block of a program that is built with guards, for the flight
// recorder (clew record --guards). It needs nothing but itself: either
//
//   - one source file, or several, of the program and of each of its libraries includes it, or
//   - a file that has only this include is compiled, and its object is linked to each of them.
//
//     clang -g -O2 -fsanitize-coverage=trace-pc-guard -c program.c
//     gcc   -g -O0 -fsanitize-coverage=trace-pc -fno-optimize-sibling-calls -c program.c
//
// Who links with the first option gives clang -fno-sanitize-link-runtime, too: else it adds a
// runtime of its own, with handlers for signals.
//
// It is C, and C++. While nobody records, a guard is a call, a nop and a return. The first
// instruction has the five bytes of a jump, so that a thread is never inside of what Clew replaces
// by one. The functions change no register but the instruction pointer; what a recorder runs in
// their place changes r10, r11, rax and flags, which any call may change. They are hidden: each
// program and library has its own. A program's own functions of these names, as a strong
// definition in another file, take their place, and are not recorded.
#pragma once

#if !defined(__x86_64__)
#error "clew/guards.h is for x86-64"
#endif

// As assembly, so that no compiler puts a guard into a guard.
#define CLEW_GUARD_FUNCTION(name, body)      \
  __asm__(                                   \
      ".pushsection .text\n\t.p2align 4\n\t" \
      ".weak " name "\n\t.hidden " name      \
      "\n\t"                                 \
      ".type " name ", @function\n" name     \
      ":\n\t"                                \
      ".cfi_startproc\n\t" body              \
      "\n\t.cfi_endproc\n\t"                 \
      ".size " name ", . - " name "\n\t.popsection")
#define CLEW_GUARD_BODY ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret" /* A nop of 5 bytes. */

CLEW_GUARD_FUNCTION("__sanitizer_cov_trace_pc_guard", CLEW_GUARD_BODY);
CLEW_GUARD_FUNCTION("__sanitizer_cov_trace_pc", CLEW_GUARD_BODY);
CLEW_GUARD_FUNCTION("__sanitizer_cov_trace_pc_guard_init", "ret");

#undef CLEW_GUARD_FUNCTION
#undef CLEW_GUARD_BODY
