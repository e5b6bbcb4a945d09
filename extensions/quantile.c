/* SPDX-License-Identifier: Apache-2.0 */
/* A quantile of all values so far, within 1/32 of it: a histogram whose buckets are 32 to a power
 * of two (as HdrHistogram has them), walked from the top. */
#include "clew.h"

#define STEPS_LOG2 5
#define STEPS (1u << STEPS_LOG2)
#define BUCKETS ((64 - STEPS_LOG2 + 1) * STEPS)

static u32 counts[BUCKETS];
static u64 total;
static u32 highest;

static u32 bucket_of(u64 value) {
  u64 length = clew_bit_length(value);
  if (length <= STEPS_LOG2 + 1) return (u32)value;
  u64 shift = length - STEPS_LOG2 - 1;
  return (u32)(shift * STEPS + (value >> shift));
}

static u64 lower_end(u32 bucket) {
  if (bucket < 2 * STEPS) return bucket;
  u32 shift = bucket / STEPS - 1;
  return (u64)(bucket % STEPS + STEPS) << shift;
}

/* Adds a value; the quantile of all so far, `per_mille` of 1000: running_quantile(x, 990) is the
 * 99th percentile. */
u64 running_quantile(u64 value, u64 per_mille) {
  u32 bucket = bucket_of(value);
  if (bucket >= BUCKETS) bucket = BUCKETS - 1;
  ++counts[bucket];
  ++total;
  if (bucket > highest) highest = bucket;
  if (per_mille > 1000) per_mille = 1000;
  u64 above = total - total * per_mille / 1000;
  u64 passed = 0;
  u32 at = highest;
  while (at > 0) {
    passed += counts[at];
    if (passed >= above && passed != 0) break;
    --at;
  }
  return lower_end(at);
}
