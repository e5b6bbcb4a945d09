/* SPDX-License-Identifier: Apache-2.0 */
/* Sketch sampling: a frequent event passes seldom, a rare one always (Bhatia et al., Lightweight,
 * High-Resolution Monitoring for Troubleshooting Production Systems, OSDI 2008; Fay, 5.2.3). */
#include "clew.h"

#define SKETCH_ROWS 4
#define SKETCH_COLUMNS 1024 /* A power of two. */

static u32 counts[SKETCH_ROWS][SKETCH_COLUMNS];

/* How often the key was given to this sketch, never too low (a count-min sketch). */
static u64 count_of(u64 key) {
  u64 hash = clew_mix(key);
  u64 least = ~0ul;
  for (u32 row = 0; row < SKETCH_ROWS; ++row) {
    u32* count = &counts[row][hash >> (16 * row) & (SKETCH_COLUMNS - 1)];
    if (*count != ~0u) ++*count;
    if (*count < least) least = *count;
  }
  return least;
}

/* True for the 1st, 2nd, 4th, 8th, … event with this key. */
bool sketch_sample(u64 key) {
  u64 count = count_of(key);
  return (count & (count - 1)) == 0;
}

/* Counts an event with this key: how many there were. */
u64 sketch_count(u64 key) {
  return count_of(key);
}
