/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 of bytes of the traced program (RFC 1321): for telling large contents apart. */
#include "clew.h"
#include "md5_block.h"

#define SIZE_MAX_BYTES 4096
#define BLOCK 64

static u32 block[BLOCK / 4];

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
    md5_block(state, block);
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
