/* SPDX-License-Identifier: Apache-2.0 */
/* The three programs of Fay's Table IV (from Small and Seltzer, A Comparison of OS Extension
 * Technologies, USENIX 1996), written for this benchmark: a digest, a logical disk, a list of hot
 * pages. Compiled twice, by clang -O2 for the machine and as an extension. */
#include "../extensions/md5_block.h"

typedef unsigned int u32;
typedef unsigned long u64;

/* --- MD5 (RFC 1321) of one MiB ------------------------------------------------------------------
 */

#define INPUT_BYTES (1u << 20)
static u32 input[INPUT_BYTES / 4];

u64 run_md5(u64 blocks) {
  u32 state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (u64 i = 0; i < blocks; ++i)
    md5_block(state, input + 16 * (i & (INPUT_BYTES / 64 - 1)));
  return (u64)state[0] << 32 | state[3];
}

/* --- Logical disk: blocks are written to a log; a map says where each is, a count of each
 * segment's blocks that are still valid. 80 % of the writes go to 20 % of the blocks.
 * ----------------------- */

#define BLOCKS (1u << 18)
#define SEGMENT_BLOCKS 64u
#define SEGMENTS (2 * BLOCKS / SEGMENT_BLOCKS)
static u32 place_of[BLOCKS];
static u32 valid_in[SEGMENTS];

u64 run_lld(u64 writes) {
  u64 random = 88172645463325252ul;
  u32 next = 0;
  u64 freed = 0;
  for (u64 i = 0; i < writes; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const u32 is_hot = (random & 1023) < 819;
    const u32 block = (u32)(random >> 20) & (is_hot ? BLOCKS / 4 - 1 : BLOCKS - 1);
    const u32 old = place_of[block];
    if (old != 0) {
      u32* valid = &valid_in[(old - 1) / SEGMENT_BLOCKS];
      if (--*valid == 0) ++freed;
    }
    while (valid_in[next / SEGMENT_BLOCKS] >= SEGMENT_BLOCKS)
      next = (next + SEGMENT_BLOCKS) & (2 * BLOCKS - 1);
    place_of[block] = next + 1;
    ++valid_in[next / SEGMENT_BLOCKS];
    next = (next + 1) & (2 * BLOCKS - 1);
  }
  return freed * 31 + next;
}

/* --- Hot list: is the page that is about to be evicted on the list of hot ones? -----------------
 */

#define HOT_PAGES 64u
struct hot {
  struct hot* next;
  u64 page;
};
static struct hot hot[HOT_PAGES];
static struct hot* first;

u64 run_hotlist(u64 lookups) {
  if (first == 0) {
    for (u32 i = 0; i < HOT_PAGES; ++i) {
      struct hot* one = &hot[(i * 29u) % HOT_PAGES];
      one->page = i * 4096;
      one->next = first;
      first = one;
    }
  }
  u64 found = 0;
  for (u64 i = 0; i < lookups; ++i) {
    const u64 page = (i % (2 * HOT_PAGES)) * 4096;
    for (const struct hot* one = first; one != 0; one = one->next) {
      if (one->page == page) {
        ++found;
        break;
      }
    }
  }
  return found;
}
