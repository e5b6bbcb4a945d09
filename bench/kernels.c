/* SPDX-License-Identifier: Apache-2.0 */
/* The three programs of Fay's Table IV (from Small and Seltzer, A Comparison of OS Extension
 * Technologies, USENIX 1996), written for this benchmark: a digest, a logical disk, a list of hot
 * pages. Compiled twice, by clang -O2 for the machine and as an extension. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;

/* --- MD5 (RFC 1321) of one MiB ------------------------------------------------------------------
 */

#define INPUT_BYTES (1u << 20)
static u32 input[INPUT_BYTES / 4];

static inline u32 rotate(u32 value, u32 count) {
  return value << count | value >> (32 - count);
}

#define STEP(f, a, b, c, d, word, constant, count) \
  a = b + rotate(a + (f) + block[word] + (constant), count)
#define F(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define G(b, c, d) ((c) ^ ((d) & ((b) ^ (c))))
#define H(b, c, d) ((b) ^ (c) ^ (d))
#define I(b, c, d) ((c) ^ ((b) | ~(d)))

u64 run_md5(u64 blocks) {
  u32 s0 = 0x67452301, s1 = 0xefcdab89, s2 = 0x98badcfe, s3 = 0x10325476;
  for (u64 i = 0; i < blocks; ++i) {
    const u32* block = input + 16 * (i & (INPUT_BYTES / 64 - 1));
    u32 a = s0, b = s1, c = s2, d = s3;
    STEP(F(b, c, d), a, b, c, d, 0, 0xd76aa478, 7);
    STEP(F(a, b, c), d, a, b, c, 1, 0xe8c7b756, 12);
    STEP(F(d, a, b), c, d, a, b, 2, 0x242070db, 17);
    STEP(F(c, d, a), b, c, d, a, 3, 0xc1bdceee, 22);
    STEP(F(b, c, d), a, b, c, d, 4, 0xf57c0faf, 7);
    STEP(F(a, b, c), d, a, b, c, 5, 0x4787c62a, 12);
    STEP(F(d, a, b), c, d, a, b, 6, 0xa8304613, 17);
    STEP(F(c, d, a), b, c, d, a, 7, 0xfd469501, 22);
    STEP(F(b, c, d), a, b, c, d, 8, 0x698098d8, 7);
    STEP(F(a, b, c), d, a, b, c, 9, 0x8b44f7af, 12);
    STEP(F(d, a, b), c, d, a, b, 10, 0xffff5bb1, 17);
    STEP(F(c, d, a), b, c, d, a, 11, 0x895cd7be, 22);
    STEP(F(b, c, d), a, b, c, d, 12, 0x6b901122, 7);
    STEP(F(a, b, c), d, a, b, c, 13, 0xfd987193, 12);
    STEP(F(d, a, b), c, d, a, b, 14, 0xa679438e, 17);
    STEP(F(c, d, a), b, c, d, a, 15, 0x49b40821, 22);
    STEP(G(b, c, d), a, b, c, d, 1, 0xf61e2562, 5);
    STEP(G(a, b, c), d, a, b, c, 6, 0xc040b340, 9);
    STEP(G(d, a, b), c, d, a, b, 11, 0x265e5a51, 14);
    STEP(G(c, d, a), b, c, d, a, 0, 0xe9b6c7aa, 20);
    STEP(G(b, c, d), a, b, c, d, 5, 0xd62f105d, 5);
    STEP(G(a, b, c), d, a, b, c, 10, 0x02441453, 9);
    STEP(G(d, a, b), c, d, a, b, 15, 0xd8a1e681, 14);
    STEP(G(c, d, a), b, c, d, a, 4, 0xe7d3fbc8, 20);
    STEP(G(b, c, d), a, b, c, d, 9, 0x21e1cde6, 5);
    STEP(G(a, b, c), d, a, b, c, 14, 0xc33707d6, 9);
    STEP(G(d, a, b), c, d, a, b, 3, 0xf4d50d87, 14);
    STEP(G(c, d, a), b, c, d, a, 8, 0x455a14ed, 20);
    STEP(G(b, c, d), a, b, c, d, 13, 0xa9e3e905, 5);
    STEP(G(a, b, c), d, a, b, c, 2, 0xfcefa3f8, 9);
    STEP(G(d, a, b), c, d, a, b, 7, 0x676f02d9, 14);
    STEP(G(c, d, a), b, c, d, a, 12, 0x8d2a4c8a, 20);
    STEP(H(b, c, d), a, b, c, d, 5, 0xfffa3942, 4);
    STEP(H(a, b, c), d, a, b, c, 8, 0x8771f681, 11);
    STEP(H(d, a, b), c, d, a, b, 11, 0x6d9d6122, 16);
    STEP(H(c, d, a), b, c, d, a, 14, 0xfde5380c, 23);
    STEP(H(b, c, d), a, b, c, d, 1, 0xa4beea44, 4);
    STEP(H(a, b, c), d, a, b, c, 4, 0x4bdecfa9, 11);
    STEP(H(d, a, b), c, d, a, b, 7, 0xf6bb4b60, 16);
    STEP(H(c, d, a), b, c, d, a, 10, 0xbebfbc70, 23);
    STEP(H(b, c, d), a, b, c, d, 13, 0x289b7ec6, 4);
    STEP(H(a, b, c), d, a, b, c, 0, 0xeaa127fa, 11);
    STEP(H(d, a, b), c, d, a, b, 3, 0xd4ef3085, 16);
    STEP(H(c, d, a), b, c, d, a, 6, 0x04881d05, 23);
    STEP(H(b, c, d), a, b, c, d, 9, 0xd9d4d039, 4);
    STEP(H(a, b, c), d, a, b, c, 12, 0xe6db99e5, 11);
    STEP(H(d, a, b), c, d, a, b, 15, 0x1fa27cf8, 16);
    STEP(H(c, d, a), b, c, d, a, 2, 0xc4ac5665, 23);
    STEP(I(b, c, d), a, b, c, d, 0, 0xf4292244, 6);
    STEP(I(a, b, c), d, a, b, c, 7, 0x432aff97, 10);
    STEP(I(d, a, b), c, d, a, b, 14, 0xab9423a7, 15);
    STEP(I(c, d, a), b, c, d, a, 5, 0xfc93a039, 21);
    STEP(I(b, c, d), a, b, c, d, 12, 0x655b59c3, 6);
    STEP(I(a, b, c), d, a, b, c, 3, 0x8f0ccc92, 10);
    STEP(I(d, a, b), c, d, a, b, 10, 0xffeff47d, 15);
    STEP(I(c, d, a), b, c, d, a, 1, 0x85845dd1, 21);
    STEP(I(b, c, d), a, b, c, d, 8, 0x6fa87e4f, 6);
    STEP(I(a, b, c), d, a, b, c, 15, 0xfe2ce6e0, 10);
    STEP(I(d, a, b), c, d, a, b, 6, 0xa3014314, 15);
    STEP(I(c, d, a), b, c, d, a, 13, 0x4e0811a1, 21);
    STEP(I(b, c, d), a, b, c, d, 4, 0xf7537e82, 6);
    STEP(I(a, b, c), d, a, b, c, 11, 0xbd3af235, 10);
    STEP(I(d, a, b), c, d, a, b, 2, 0x2ad7d2bb, 15);
    STEP(I(c, d, a), b, c, d, a, 9, 0xeb86d391, 21);
    s0 += a;
    s1 += b;
    s2 += c;
    s3 += d;
  }
  return (u64)s0 << 32 | s3;
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
