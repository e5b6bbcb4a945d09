// SPDX-License-Identifier: Apache-2.0
// Victim `flags`: calls the functions of flags_asm.S, which hand one another values in flags, and
// checks what came of it.
#include <stdint.h>

#include "victim.h"

// Counted here for what each calls.
VICTIM_COUNTER(flag_compare);
VICTIM_COUNTER(flag_add);
VICTIM_COUNTER(flag_stack);
VICTIM_COUNTER(flag_set);
VICTIM_COUNTER(flag_jump);
VICTIM_COUNTER(flag_jump_if);
VICTIM_COUNTER(flag_pass);
VICTIM_COUNTER(flag_argument);
VICTIM_COUNTER(flag_argument_later);
VICTIM_COUNTER(flag_dead);

uint64_t call_compare(uint64_t a, uint64_t b);
uint64_t call_add(uint64_t a, uint64_t b);
uint64_t call_stack(uint64_t a, uint64_t b);
uint64_t call_set(uint64_t a, uint64_t b);
uint64_t call_jump(uint64_t a, uint64_t b);
uint64_t call_jump_if(uint64_t a, uint64_t b);
uint64_t call_argument(uint64_t a, uint64_t b);
uint64_t call_argument_later(uint64_t a, uint64_t b, uint64_t c);
uint64_t flag_dead(uint64_t a, uint64_t b);

const struct VictimCommand victim_commands[] = {{0}};

// What call_* give: lahf in bits 8 to 15 (bit 1 of the flags is always set), OF in bit 0.
enum { kCarry = 1 << 8, kParity = 1 << 10, kAdjust = 1 << 12, kZero = 1 << 14, kSign = 1 << 15 };
enum { kOverflow = 1, kFixed = 1 << 9 };

static uint64_t of_result(uint64_t value) {
  return kFixed | (value == 0 ? kZero : 0) | ((int64_t)value < 0 ? kSign : 0) |
         (__builtin_parity((uint8_t)value) ? 0 : kParity);
}

static uint64_t of_difference(uint64_t a, uint64_t b) {
  int64_t difference;
  const int over = __builtin_sub_overflow((int64_t)a, (int64_t)b, &difference);
  return of_result(a - b) | (a < b ? kCarry : 0) | ((a & 15) < (b & 15) ? kAdjust : 0) |
         (over ? kOverflow : 0);
}

static uint64_t of_sum(uint64_t a, uint64_t b) {
  int64_t sum;
  const int over = __builtin_add_overflow((int64_t)a, (int64_t)b, &sum);
  return of_result(a + b) | (a + b < a ? kCarry : 0) | ((a & 15) + (b & 15) > 15 ? kAdjust : 0) |
         (over ? kOverflow : 0);
}

#define CALL(name, ...) (VICTIM_COUNT(flag_##name), call_##name(__VA_ARGS__))

static uint64_t run_results(uint64_t a, uint64_t b) {
  const uint64_t compared = CALL(compare, a, b);
  VICTIM_CHECK(compared == of_difference(a, b));
  VICTIM_CHECK(CALL(stack, a, b) == of_difference(a, b));
  const uint64_t added = CALL(add, a, b);
  VICTIM_CHECK(added == of_sum(a, b));
  // Adjust is not defined behind a test.
  const uint64_t set = CALL(set, a, b) & ~(uint64_t)kAdjust;
  VICTIM_CHECK(set == (of_result(a & b) | ((a & b) != 0 ? kCarry : 0)));
  return victim_mix(compared, added);
}

static uint64_t run_jumps(uint64_t a, uint64_t b) {
  VICTIM_COUNT(flag_pass);
  const uint64_t jumped = CALL(jump, a, b);
  VICTIM_CHECK(jumped == of_difference(a, b));
  if (a > b) VICTIM_COUNT(flag_pass);
  VICTIM_CHECK(CALL(jump_if, a, b) == of_difference(a, b));
  return jumped;
}

static uint64_t run_arguments(uint64_t a, uint64_t b) {
  VICTIM_CHECK(CALL(argument, a, b) == a + (a < b));
  VICTIM_CHECK(CALL(argument_later, a, b, 0) == a + b + 7 + (a < b));
  VICTIM_CHECK(CALL(argument_later, a, b, 9) == a + 5 * b + 7 + (a < b));
  VICTIM_COUNT(flag_dead);
  VICTIM_CHECK(flag_dead(a, b) == 0 - a - (a < b));
  return a;
}

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t a = i * 0x9E3779B97F4A7C15ULL;
    const uint64_t b = i % 7 == 0 ? a : i * i * 0xD1B54A32D192ED03ULL;
    digest = victim_mix(digest, run_results(a, b));
    digest = victim_mix(digest, run_jumps(a, b));
    digest = victim_mix(digest, run_arguments(a, b));
  }
  return digest;
}
