// SPDX-License-Identifier: Apache-2.0
// Victim `returns`: functions that return in every class of registers, callers that keep values in
// registers which the callee happens not to touch, and machine state that a probe must not disturb.
#include <complex.h>
#include <fenv.h>
#include <immintrin.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "victim.h"

typedef unsigned __int128 Wide;
struct Mixed {
  double x;
  uint64_t n;
};
struct Big {
  uint64_t words[7];
};

VICTIM_COUNTER(return_wide);
VICTIM_COUNTER(return_long_double);
VICTIM_COUNTER(return_complex);
VICTIM_COUNTER(return_mixed);
VICTIM_COUNTER(return_big);
VICTIM_COUNTER(return_vector);
VICTIM_COUNTER(return_float);
VICTIM_COUNTER(return_nothing);
VICTIM_COUNTER(variadic);
VICTIM_COUNTER(quiet_callee);
VICTIM_COUNTER(keeps_registers);
VICTIM_COUNTER(nested);

const struct VictimCommand victim_commands[] = {{0}};

// Counting happens in the callers where the callee must stay as small as it is.
VICTIM_FUNCTION Wide return_wide(uint64_t x) {
  return ((Wide)x << 64) | (x * 3);
}
VICTIM_FUNCTION long double return_long_double(uint64_t x) {
  return (long double)x / 3.0L;
}
VICTIM_FUNCTION _Complex long double return_complex(uint64_t x) {
  return (long double)x + (long double)(x + 1) * 1.0iL;
}
VICTIM_FUNCTION struct Mixed return_mixed(uint64_t x) {
  return (struct Mixed){.x = (double)x / 7.0, .n = x ^ 0x55};
}
VICTIM_FUNCTION struct Big return_big(uint64_t x) {
  struct Big big;
  for (uint64_t i = 0; i < 7; ++i)
    big.words[i] = x * (i + 1);
  return big;
}
VICTIM_FUNCTION float return_float(uint64_t x) {
  return (float)x * 0.5F;
}
VICTIM_FUNCTION void return_nothing(uint64_t* x) {
  *x += 11;
}

__attribute__((target("avx512f"))) VICTIM_FUNCTION __m512i return_vector(uint64_t x) {
  return _mm512_set1_epi64((long long)(x * 5));
}

__attribute__((target("avx512f"))) static uint64_t check_vector(uint64_t x) {
  uint64_t words[8];
  VICTIM_COUNT(return_vector);
  _mm512_storeu_si512(words, return_vector(x));
  for (int i = 0; i < 8; ++i)
    VICTIM_CHECK(words[i] == x * 5);
  return words[7];
}

// al holds the number of vector registers used; the callee spills them all when it is not 0.
VICTIM_FUNCTION double variadic(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; ++i)
    sum += va_arg(list, double);
  va_end(list);
  return sum;
}

// Touches rax and rdi only.
uint64_t quiet_callee(uint64_t x);
__asm__(
    ".text\n.balign 16\n.globl quiet_callee\n.type quiet_callee, @function\n"
    "quiet_callee:\n.cfi_startproc\n"
    "  lea 42(%rdi,%rdi,2), %rax\n  nop\n  ret\n"
    ".cfi_endproc\n.size quiet_callee, . - quiet_callee\n");

// What -fipa-ra makes of a caller, written down: values live in every caller-saved register across
// the call, because the callee is known to leave them alone.
VICTIM_FUNCTION uint64_t keeps_registers(uint64_t x) {
  uint64_t result = x, difference = 0;
  VICTIM_COUNT(quiet_callee);
  __asm__ volatile(
      "sub $128, %%rsp\n"
      "movabs $0x1111111111111111, %%rcx\n movabs $0x2222222222222222, %%rdx\n"
      "movabs $0x3333333333333333, %%rsi\n movabs $0x4444444444444444, %%r8\n"
      "movabs $0x5555555555555555, %%r9\n  movabs $0x6666666666666666, %%r10\n"
      "movabs $0x7777777777777777, %%r11\n"
      "movq %%r10, %%xmm15\n movq %%r11, %%xmm0\n"
      "call quiet_callee\n"
      "xor %1, %1\n"
      "movabs $0x1111111111111111, %%rdi\n xor %%rdi, %%rcx\n or %%rcx, %1\n"
      "movabs $0x2222222222222222, %%rdi\n xor %%rdi, %%rdx\n or %%rdx, %1\n"
      "movabs $0x3333333333333333, %%rdi\n xor %%rdi, %%rsi\n or %%rsi, %1\n"
      "movabs $0x4444444444444444, %%rdi\n xor %%rdi, %%r8\n  or %%r8, %1\n"
      "movabs $0x5555555555555555, %%rdi\n xor %%rdi, %%r9\n  or %%r9, %1\n"
      "movabs $0x6666666666666666, %%rdi\n xor %%rdi, %%r10\n or %%r10, %1\n"
      "movabs $0x7777777777777777, %%rdi\n xor %%rdi, %%r11\n or %%r11, %1\n"
      "movq %%xmm15, %%rsi\n movabs $0x6666666666666666, %%rdi\n xor %%rdi, %%rsi\n or %%rsi, %1\n"
      "movq %%xmm0, %%rsi\n movabs $0x7777777777777777, %%rdi\n xor %%rdi, %%rsi\n or %%rsi, %1\n"
      "add $128, %%rsp\n"
      : "=a"(result), "=&b"(difference), "+D"(x)
      :
      : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm15", "memory", "cc");
  VICTIM_CHECK(difference == 0);
  return result;
}

__attribute__((target("avx512f,avx512bw"))) static void check_mask_registers(void) {
  uint64_t mask = 0x123456789ABCDEF0, after = 0, x = 1;
  VICTIM_COUNT(quiet_callee);
  __asm__ volatile(
      "sub $128, %%rsp\n kmovq %2, %%k5\n call quiet_callee\n kmovq %%k5, %0\n add $128, %%rsp\n"
      : "=&r"(after), "+D"(x)
      : "b"(mask)
      : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
  VICTIM_CHECK(after == mask);
}

// GNU C nested function: the static chain travels in r10.
static uint64_t call_nested(uint64_t x) {
  uint64_t captured = x * 13;
  __attribute__((noinline)) uint64_t nested(uint64_t y) {
    return captured + y;
  }
  VICTIM_COUNT(nested);
  return nested(x);
}

// Values of the old stack of floating-point registers live across a traced call.
static void check_x87(uint64_t x) {
  const long double third = (long double)x / 3.0L;
  volatile long double kept = third;
  uint64_t cell = x;
  VICTIM_COUNT(return_nothing);
  return_nothing(&cell);
  VICTIM_CHECK(kept == third);
  VICTIM_COUNT(return_long_double);
  VICTIM_CHECK(return_long_double(x) == third);
}

// The program rounds upwards; so it must after each call.
static uint64_t check_rounding(uint64_t x) {
  fesetround(FE_UPWARD);
  VICTIM_COUNT(return_float);
  const volatile float half = return_float(x);
  VICTIM_CHECK(fegetround() == FE_UPWARD);
  volatile float one = 1.0F, ten = 10.0F;
  const volatile float tenth = one / ten;
  fesetround(FE_TONEAREST);
  const volatile float nearest = one / ten;
  VICTIM_CHECK(tenth >= nearest);
  return (uint64_t)half;
}

static uint64_t run_classes(uint64_t x) {
  VICTIM_COUNT(return_wide);
  const Wide wide = return_wide(x);
  VICTIM_CHECK((uint64_t)(wide >> 64) == x && (uint64_t)wide == x * 3);
  VICTIM_COUNT(return_complex);
  const _Complex long double z = return_complex(x);
  VICTIM_CHECK(creall(z) == (long double)x && cimagl(z) == (long double)(x + 1));
  VICTIM_COUNT(return_mixed);
  const struct Mixed mixed = return_mixed(x);
  VICTIM_CHECK(mixed.x == (double)x / 7.0 && mixed.n == (x ^ 0x55));
  VICTIM_COUNT(return_big);
  const struct Big big = return_big(x);
  for (uint64_t i = 0; i < 7; ++i)
    VICTIM_CHECK(big.words[i] == x * (i + 1));
  VICTIM_COUNT(variadic);
  VICTIM_CHECK(variadic(8, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, (double)x) == 28.0 + (double)x);
  return (uint64_t)wide + mixed.n + big.words[6];
}

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  const int has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  for (uint64_t round = 0; round < rounds; ++round) {
    digest = victim_mix(digest, run_classes(round));
    VICTIM_COUNT(keeps_registers);
    VICTIM_CHECK(keeps_registers(round) == 3 * round + 42);
    VICTIM_CHECK(call_nested(round) == 14 * round);
    check_x87(round);
    digest = victim_mix(digest, check_rounding(round));
    if (has_avx512) {
      digest = victim_mix(digest, check_vector(round));
      check_mask_registers();
    }
  }
  return digest;
}
