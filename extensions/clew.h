// SPDX-License-Identifier: Apache-2.0
// What an extension may use: functions in C that queries call at every hit (clew run --ext FILE.c).
//
//     #include "clew.h"
//
//     static u64 seen[64];
//
//     // Whether this is the first, second, fourth, … call from there.
//     bool is_power(const void *caller) {
//       u64 count = ++seen[(u64)caller % 64];
//       return (count & (count - 1)) == 0;
//     }
//
// Every function that is not static can be called by name. Parameters and results are integers, at
// most five; a pointer is an address in the traced program, which can only be read by clew_read()
// and clew_read_string(). Static and global variables are the state: each thread of the traced
// program has its own, which begins as the file says. Loops are fine; after some 100,000
// instructions the hit ends without an answer and is counted. There is no C library, no floating
// point, no recursion, no call through a pointer.
//
// The code runs inside the traced program. It is masked and verified, so the worst that a mistake
// can do is a wrong answer.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long s64;

#ifndef __cplusplus
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void*)0)
#endif

#define CLEW_INLINE static inline __attribute__((always_inline, unused))

/* The numbers are those of accessors (docs/query-language.md, "Extensions"). */
static u64 (*const clew_cpu)(void) __attribute__((unused)) = (void*)1;
static u64 (*const clew_bit_length)(u64 value) __attribute__((unused)) = (void*)2;
static s64 (*const clew_divide)(s64 left, s64 right) __attribute__((unused)) = (void*)5;
static s64 (*const clew_modulo)(s64 left, s64 right) __attribute__((unused)) = (void*)6;
static u64 (*const clew_read_raw)(void* to, u64 size, u64 address)
    __attribute__((unused)) = (void*)7;
static s64 (*const clew_read_string_raw)(char* to, u64 size, u64 address)
    __attribute__((unused)) = (void*)8;

/* The time stamp counter. (A call of address 0 means nothing in C.) */
CLEW_INLINE u64 clew_ticks(void) {
  u64 ticks;
  __asm__ volatile("call 0\n%0 = r0" : "=r"(ticks) : : "r0", "r1", "r2", "r3", "r4", "r5");
  return ticks;
}

/* Copies `size` bytes (1 to 4096) of the traced program's memory. False, and zeros, when any of
 * them cannot be read; never a fault. `to` is a local or static variable. */
CLEW_INLINE bool clew_read(void* to, u64 size, const void* address) {
  return clew_read_raw(to, size, (u64)address) != 0;
}

/* Copies a text with its NUL, at most `size` bytes (1 to 4096); the rest of them is zero. Its
 * length, or -1 when it cannot be read. */
CLEW_INLINE s64 clew_read_string(char* to, u64 size, const char* address) {
  return clew_read_string_raw(to, size, (u64)address);
}

/* Spreads the bits of a number over all 64 (the finaliser of splitmix64). */
CLEW_INLINE u64 clew_mix(u64 value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ul;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBul;
  return value ^ (value >> 31);
}

/* A number that looks random: xorshift64* (Marsaglia 2003, Vigna 2016). `state` is a static
 * variable of the caller's. */
CLEW_INLINE u64 clew_random(u64* state) {
  u64 value = *state != 0 ? *state : (clew_mix(clew_ticks()) | 1);
  value ^= value >> 12;
  value ^= value << 25;
  value ^= value >> 27;
  *state = value;
  return value * 0x2545F4914F6CDD1Dul;
}
