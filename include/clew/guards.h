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
// definition, take their place.
#pragma once

#if !defined(__x86_64__)
#error "clew/guards.h is for x86-64"
#endif
#if defined(__clang__)
#define CLEW_GUARD_ATTRIBUTES weak, visibility("hidden"), noinline, naked
#elif __GNUC__ >= 12
#define CLEW_GUARD_ATTRIBUTES weak, visibility("hidden"), noipa, naked, no_sanitize_coverage
#else
#define CLEW_GUARD_ATTRIBUTES weak, visibility("hidden"), noipa, naked
#endif
#define CLEW_GUARD_BODY ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret"  // A nop of 5 bytes.

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((CLEW_GUARD_ATTRIBUTES)) void __sanitizer_cov_trace_pc_guard(unsigned* guard) {
  __asm__(CLEW_GUARD_BODY);
#if !defined(__clang__)
  (void)guard;
#endif
}

__attribute__((CLEW_GUARD_ATTRIBUTES)) void __sanitizer_cov_trace_pc(void) {
  __asm__(CLEW_GUARD_BODY);
}

__attribute__((CLEW_GUARD_ATTRIBUTES)) void __sanitizer_cov_trace_pc_guard_init(unsigned* begin,
                                                                                unsigned* end) {
  __asm__("ret");
#if !defined(__clang__)
  (void)begin;
  (void)end;
#endif
}

#ifdef __cplusplus
}
#endif

#undef CLEW_GUARD_ATTRIBUTES
#undef CLEW_GUARD_BODY
