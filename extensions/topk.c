/* SPDX-License-Identifier: Apache-2.0 */
/* The most frequent values (Metwally et al., Efficient Computation of Frequent and Top-k Elements
 * in Data Streams, ICDT 2005: space saving). */
#include "clew.h"

#define PLACES 32

static u64 keys[PLACES];
static u64 counts[PLACES];
static u64 errors[PLACES];

/* Counts a value: how many of the 31 other most frequent ones are more frequent, so 0 is the most
 * frequent value of all. Exact for values that make up more than 1/32 of all. */
u64 topk_rank(u64 key) {
  u32 place = PLACES;
  u32 least = 0;
  for (u32 i = 0; i < PLACES; ++i) {
    if (counts[i] != 0 && keys[i] == key) place = i;
    if (counts[i] < counts[least]) least = i;
  }
  if (place == PLACES) {
    place = least;
    errors[place] = counts[place];
    keys[place] = key;
  }
  u64 count = ++counts[place];
  u64 rank = 0;
  for (u32 i = 0; i < PLACES; ++i)
    if (counts[i] > count) ++rank;
  return rank;
}

/* How often the value was counted by topk_rank(), perhaps too high by topk_error(); 0 when it is
 * not among the most frequent ones. */
u64 topk_count(u64 key) {
  for (u32 i = 0; i < PLACES; ++i)
    if (counts[i] != 0 && keys[i] == key) return counts[i];
  return 0;
}

u64 topk_error(u64 key) {
  for (u32 i = 0; i < PLACES; ++i)
    if (counts[i] != 0 && keys[i] == key) return errors[i];
  return 0;
}
