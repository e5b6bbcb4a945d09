// SPDX-License-Identifier: Apache-2.0
// Victim `sites`: calls every function of sites_asm.S and a switch with a jump table, counts the
// calls, and checks each result against what C computes.
#include <stdint.h>
#include <string.h>

#include "victim.h"

// One line per traced function: its name, the type it returns, its parameters.
#define SITES(X)                                  \
  X(packed_ret_a, void, (void))                   \
  X(packed_ret_b, void, (void))                   \
  X(packed_ret_c, void, (void))                   \
  X(packed_zero_a, uint32_t, (void))              \
  X(packed_zero_b, uint32_t, (void))              \
  X(packed_load_a, uint32_t, (const void*))       \
  X(packed_load_b, uint32_t, (const void*))       \
  X(packed_long, uint64_t, (uint64_t, uint64_t))  \
  X(loop_at_0, uint64_t, (uint64_t, uint64_t*))   \
  X(loop_at_1, uint64_t, (uint64_t, uint64_t*))   \
  X(loop_at_2, uint64_t, (uint64_t, uint64_t*))   \
  X(loop_at_3, uint64_t, (uint64_t, uint64_t*))   \
  X(loop_at_4, uint64_t, (uint64_t, uint64_t*))   \
  X(jumped_into, uint64_t, (uint64_t))            \
  X(jumps_into_other, uint64_t, (uint64_t))       \
  X(rip_lea, uint64_t, (void))                    \
  X(rip_compare, uint64_t, (void))                \
  X(rip_push, uint64_t, (void))                   \
  X(rip_jump, uint64_t, (uint64_t))               \
  X(rip_jump_target, uint64_t, (uint64_t))        \
  X(rip_call, uint64_t, (uint64_t))               \
  X(rip_call_target, uint64_t, (uint64_t))        \
  X(rip_multiply, uint64_t, (void))               \
  X(rip_exchange, uint64_t, (uint64_t, uint64_t)) \
  X(rip_vector, void, (void*))                    \
  X(own_address_by_call, uint64_t, (void))        \
  X(own_address_by_callee, uint64_t, (void))      \
  X(read_return_address, uint64_t, (void))        \
  X(table_into_window, uint64_t, (uint64_t))

#define DECLARE(name, type, parameters) \
  type name parameters;                 \
  VICTIM_COUNTER(name);
SITES(DECLARE)
VICTIM_COUNTER(switch_by_table);

// Count the call, then make it.
#define CALL(name, ...) (VICTIM_COUNT(name), name(__VA_ARGS__))

extern const char own_address_by_call_next[];
extern const char own_address_by_callee_next[];
extern uint64_t rip_word;
extern uint64_t rip_shared;

const struct VictimCommand victim_commands[] = {{0}};

// Cases too unlike one another to become arithmetic: the compiler makes a table of jumps.
VICTIM_FUNCTION uint64_t switch_by_table(uint64_t which, uint64_t x) {
  VICTIM_COUNT(switch_by_table);
  switch (which) {
    case 0:
      return x + 1;
    case 1:
      return x * 3;
    case 2:
      return x ^ 0xFF00;
    case 3:
      return x << 3;
    case 4:
      return x >> 5;
    case 5:
      return ~x;
    case 6:
      return x - 77;
    case 7:
      return x % 1000;
    case 8:
      return x / 3;
    case 9:
      return (x << 7) | (x >> 57);
    case 10:
      return x & 0xFFFF;
    case 11:
      return x | 0x10001;
    case 12:
      return x * x;
    case 13:
      return 0 - x;
    case 14:
      return x + which * 99;
    case 15:
      return __builtin_bswap64(x);
    default:
      return 12345;
  }
}

static uint64_t expected_switch(uint64_t which, uint64_t x) {
  const uint64_t all[] = {x + 1,          x * 3,
                          x ^ 0xFF00,     x << 3,
                          x >> 5,         ~x,
                          x - 77,         x % 1000,
                          x / 3,          (x << 7) | (x >> 57),
                          x & 0xFFFF,     x | 0x10001,
                          x * x,          0 - x,
                          x + which * 99, __builtin_bswap64(x)};
  return which < 16 ? all[which] : 12345;
}

static uint64_t run_packed(uint64_t round) {
  const uint32_t word = (uint32_t)(round * 2654435761U);
  CALL(packed_ret_a);
  CALL(packed_ret_b);
  CALL(packed_ret_b);
  CALL(packed_ret_c);
  VICTIM_CHECK(CALL(packed_zero_a) == 0);
  VICTIM_CHECK(CALL(packed_zero_b) == 0);
  VICTIM_CHECK(CALL(packed_load_a, &word) == word);
  VICTIM_CHECK(CALL(packed_load_b, &word) == word);
  const uint64_t sum = CALL(packed_long, round, 3);
  VICTIM_CHECK(sum == round + 3 * 4 + 17);
  return sum + word;
}

static uint64_t run_loops(uint64_t round) {
  const uint64_t n = 1 + round % 50;
  const uint64_t expected = n * (n + 1) / 2;
  uint64_t cells[2] = {0, 0};
  uint64_t more[2] = {0, 0};
  VICTIM_CHECK(CALL(loop_at_0, n, cells) == expected);
  VICTIM_CHECK(CALL(loop_at_1, n, more) == expected);
  VICTIM_CHECK(CALL(loop_at_2, n, more) == expected);
  more[0] = 7;
  more[1] = 9;
  VICTIM_CHECK(CALL(loop_at_3, n, more) == expected + 7);
  VICTIM_CHECK(CALL(loop_at_4, n, more) == expected + 9);
  VICTIM_CHECK(CALL(table_into_window, n) == expected);
  return expected;
}

static uint64_t run_jumps(uint64_t round) {
  VICTIM_CHECK(CALL(jumped_into, round) == (round + 5) * 3);
  VICTIM_CHECK(CALL(jumps_into_other, round) == (2 * round + 5) * 3);
  const uint64_t which = round % 18;
  const uint64_t value = switch_by_table(which, round * 0x9E3779B97F4A7C15ULL);
  VICTIM_CHECK(value == expected_switch(which, round * 0x9E3779B97F4A7C15ULL));
  return value;
}

static uint64_t run_vector(void) {
  uint64_t stored[8] = {0};
  if (!__builtin_cpu_supports("avx512f")) return 0x1122334455667788;
  CALL(rip_vector, stored);
  for (int i = 0; i < 8; ++i) {
    VICTIM_CHECK(stored[i] == 0x1122334455667788);
  }
  return stored[0];
}

static uint64_t run_relative(uint64_t round) {
  VICTIM_CHECK(CALL(rip_lea) == rip_word);
  VICTIM_CHECK(CALL(rip_compare) == 1);
  VICTIM_CHECK(CALL(rip_push) == rip_word);
  VICTIM_COUNT(rip_jump_target);
  VICTIM_CHECK(CALL(rip_jump, round) == round + 1000);
  VICTIM_COUNT(rip_call_target);
  VICTIM_CHECK(CALL(rip_call, round) == round + 2001);
  VICTIM_CHECK(CALL(rip_multiply) == rip_word * 100000);
  rip_shared = round;
  VICTIM_CHECK(CALL(rip_exchange, round, round + 1) == round);
  VICTIM_CHECK(rip_shared == round + 1);
  VICTIM_CHECK(CALL(rip_exchange, round, round + 2) == round + 1);
  return run_vector() + rip_shared;
}

static void run_own_address(void) {
  VICTIM_CHECK(CALL(own_address_by_call) == (uint64_t)own_address_by_call_next);
  VICTIM_COUNT(read_return_address);
  VICTIM_CHECK(CALL(own_address_by_callee) == (uint64_t)own_address_by_callee_next);
}

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    digest = victim_mix(digest, run_packed(round));
    digest = victim_mix(digest, run_loops(round));
    digest = victim_mix(digest, run_jumps(round));
    digest = victim_mix(digest, run_relative(round));
    run_own_address();
  }
  return digest;
}
