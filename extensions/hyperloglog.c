/* SPDX-License-Identifier: Apache-2.0 */
/* How many different values there were (Flajolet et al., HyperLogLog, 2007), in integers: the sum
 * of 2^-register is kept in units of 2^-32 while registers change. */
#include "clew.h"

#define REGISTERS_LOG2 10
#define REGISTERS (1u << REGISTERS_LOG2)
#define RANK_MAX 32u
/* alpha of 1024 registers is 0.72054 (the paper, section 4); times 2^16. */
#define ALPHA 47221ul

static u8 ranks[REGISTERS];
static u64 inverse_sum; /* The sum of 2^(32 - rank), less what all ranks being 0 gives. */
static u32 zeros;
static bool has_begun;

/* ln(x) times 2^16 for x times 2^16, at least 1: by halves, then a series in (x - 1)/(x + 1). */
static u64 logarithm(u64 x) {
  u64 result = 0;
  for (u32 i = 0; i < 16 && x >= 2ul << 16; ++i) {
    x >>= 1;
    result += 45426; /* ln(2) */
  }
  u64 z = ((x - (1ul << 16)) << 16) / (x + (1ul << 16));
  u64 z2 = z * z >> 16;
  u64 term = z;
  u64 sum = z;
  for (u32 k = 3; k < 12; k += 2) {
    term = term * z2 >> 16;
    sum += term / k;
  }
  return result + 2 * sum;
}

/* Adds a value; the estimate of how many different ones there were. Within some 3 % in most cases.
 */
u64 hyperloglog(u64 value) {
  if (!has_begun) {
    has_begun = true;
    zeros = REGISTERS;
    inverse_sum = (u64)REGISTERS << 32;
  }
  u64 hash = clew_mix(value + 0x9E3779B97F4A7C15ul);
  u8* rank = &ranks[hash & (REGISTERS - 1)];
  u64 rest = hash >> REGISTERS_LOG2;
  u64 length = clew_bit_length(rest);
  u64 found = 64 - REGISTERS_LOG2 - length + 1;
  if (found > RANK_MAX) found = RANK_MAX;
  if (found > *rank) {
    inverse_sum -= (1ul << (32 - *rank)) - (1ul << (32 - found));
    if (*rank == 0) --zeros;
    *rank = (u8)found;
  }
  /* alpha * m^2 / sum */
  u64 estimate = ALPHA * REGISTERS * REGISTERS / (inverse_sum >> 16);
  bool is_small = estimate < 5 * REGISTERS / 2 && zeros != 0;
  if (!is_small) return estimate;
  /* Rounded: the first value gives 1. */
  return (REGISTERS * logarithm(((u64)REGISTERS << 16) / zeros) + (1u << 15)) >> 16;
}
