/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 of bytes of the traced program (RFC 1321): for telling large contents apart. */
#include "clew.h"

#define SIZE_MAX_BYTES 4096
#define BLOCK 64

static u32 block[BLOCK / 4];

CLEW_INLINE u32 rotate(u32 value, u32 count) {
  return value << count | value >> (32 - count);
}

#define STEP(f, a, b, c, d, word, constant, count) \
  a = b + rotate(a + (f) + block[word] + (constant), count)
#define F(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define G(b, c, d) ((c) ^ ((d) & ((b) ^ (c))))
#define H(b, c, d) ((b) ^ (c) ^ (d))
#define I(b, c, d) ((c) ^ ((b) | ~(d)))

/* RFC 1321, 3.4: the constants are floor(2^32 * |sin(i)|). */
static void digest_block(u32 state[4]) {
  u32 a = state[0], b = state[1], c = state[2], d = state[3];
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
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

static u32 state[4];

/* False when the bytes cannot be read, or are more than 4 KiB. */
static bool digest(const void* bytes, u64 size) {
  state[0] = 0x67452301;
  state[1] = 0xefcdab89;
  state[2] = 0x98badcfe;
  state[3] = 0x10325476;
  if (size > SIZE_MAX_BYTES) return false;
  u64 rest = size;
  const char* next = bytes;
  bool has_end = false;
  for (;;) {
    u64 here = rest < BLOCK ? rest : BLOCK;
    for (u32 i = 0; i < BLOCK / 4; ++i)
      block[i] = 0;
    if (here != 0 && !clew_read(block, here, next)) return false;
    next += here;
    rest -= here;
    if (here < BLOCK && !has_end) {
      block[here / 4] |= 0x80u << (8 * (here % 4));
      has_end = true;
    }
    bool is_last = has_end && here < BLOCK - 8;
    if (is_last) {
      block[14] = (u32)(size << 3);
      block[15] = (u32)(size >> 29);
    }
    digest_block(state);
    if (is_last) return true;
  }
}

/* The first and the last eight bytes of the digest, as a number whose hexadecimal digits read as
 * the digest is written; 0 when the bytes cannot be read. */
u64 md5_high(const void* bytes, u64 size) {
  if (!digest(bytes, size)) return 0;
  return (u64)__builtin_bswap32(state[0]) << 32 | __builtin_bswap32(state[1]);
}

u64 md5_low(const void* bytes, u64 size) {
  if (!digest(bytes, size)) return 0;
  return (u64)__builtin_bswap32(state[2]) << 32 | __builtin_bswap32(state[3]);
}
