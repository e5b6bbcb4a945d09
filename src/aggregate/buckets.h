// SPDX-License-Identifier: Apache-2.0
// The integer arithmetic that probe programs share with `add`: which bucket, which register. Every
// function here uses only operations of the probe ISA (BL = accessor BitLength).
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace clew::aggregate {

// --- hash -----------------------------------------------------------------------------------
// The hash of a key: h = kHashSeed; for each word: h = hash_step(h, word). Tables (abi/region.h,
// with | 1), Distinct and the query function `hash` use it. Two multiplications, as in
// MurmurHash3's finaliser (public domain), one application per word.
inline constexpr uint64_t kHashSeed = 0x9e3779b97f4a7c15;
inline constexpr uint64_t kHashMultiply1 = 0xff51afd7ed558ccd;
inline constexpr uint64_t kHashMultiply2 = 0xc4ceb9fe1a85ec53;

constexpr uint64_t hash_step(uint64_t hash, uint64_t word) {
  hash ^= word;
  hash *= kHashMultiply1;
  hash ^= hash >> 32;
  hash *= kHashMultiply2;
  hash ^= hash >> 32;
  return hash;
}

constexpr uint64_t hash_words(std::span<const uint64_t> words) {
  uint64_t hash = kHashSeed;
  for (const uint64_t word : words)
    hash = hash_step(hash, word);
  return hash;
}

// --- quantize: powers of two, as DTrace counts them ------------------------------------------
//   bucket 63            0
//   bucket 63 + BL(v)    v > 0: the values from 2^(BL-1) to 2^BL - 1; 127 only when unsigned
//   bucket 63 - BL(-v)   v < 0: the values from -2^(BL-1) down to -2^BL + 1; INT64_MIN in bucket 0
inline constexpr uint32_t kQuantizeWords = 128;
inline constexpr uint32_t kQuantizeZero = 63;

constexpr uint32_t quantize_bucket(uint64_t value, bool is_signed) {
  if (is_signed && (value >> 63) != 0) {
    const auto length = static_cast<uint32_t>(std::bit_width(0 - value));
    return length > kQuantizeZero ? 0 : kQuantizeZero - length;
  }
  return kQuantizeZero + static_cast<uint32_t>(std::bit_width(value));
}

// --- quantile: log-linear, 16 steps per power of two -------------------------------------------
//   v < 16   bucket v
//   else     e = BL(v) - 5; bucket (e << 4) + (v >> e)      (v >> e is 16..31)
// Negative values of a signed spec count as 0. The bucket's values are (16..31) << e and the next
// 2^e - 1, and its middle is reported: the error is at most 2^(e-1) / (16 << e) = 1/32 = 3.125 %.
inline constexpr uint32_t kQuantileWords = 976;

constexpr uint32_t quantile_bucket(uint64_t value, bool is_signed) {
  if (is_signed && (value >> 63) != 0) return 0;
  if (value < 16) return static_cast<uint32_t>(value);
  const auto shift = static_cast<uint32_t>(std::bit_width(value)) - 5;
  return (shift << 4) + static_cast<uint32_t>(value >> shift);
}
static_assert(quantile_bucket(UINT64_MAX, false) == kQuantileWords - 1);

// --- distinct: HyperLogLog with 2^10 registers -------------------------------------------------
// Register i is byte i of the cell (8 registers a word, little endian), so a program uses one byte
// load and one byte store: i = hash & 1023; rank = 55 - BL(hash >> 10); if register[i] < rank then
// register[i] = rank. Standard error 1.04 / sqrt(1024) = 3.25 %.
inline constexpr uint32_t kDistinctRegisters = 1024;
inline constexpr uint32_t kDistinctWords = kDistinctRegisters / 8;

struct DistinctUpdate {
  uint32_t register_index;
  uint8_t rank;
};
constexpr DistinctUpdate distinct_update(uint64_t hash) {
  const auto length = static_cast<uint32_t>(std::bit_width(hash >> 10));
  return {.register_index = static_cast<uint32_t>(hash & (kDistinctRegisters - 1)),
          .rank = static_cast<uint8_t>(55 - length)};
}

// --- lquantize ---------------------------------------------------------------------------------
//   bucket 0 = v < low; bucket 1 + (v - low) / step; bucket n + 1 = v >= low + n * step
struct LinearBuckets {
  int64_t low;
  int64_t high;
  int64_t step;
};
constexpr uint64_t lquantize_levels(const LinearBuckets& b) {
  return (static_cast<uint64_t>(b.high) - static_cast<uint64_t>(b.low)) /
         static_cast<uint64_t>(b.step);
}
constexpr uint32_t lquantize_bucket(const LinearBuckets& b, int64_t value) {
  if (value < b.low) return 0;
  const uint64_t level =
      (static_cast<uint64_t>(value) - static_cast<uint64_t>(b.low)) / static_cast<uint64_t>(b.step);
  const uint64_t levels = lquantize_levels(b);
  return static_cast<uint32_t>(level < levels ? level + 1 : levels + 1);
}

// --- llquantize --------------------------------------------------------------------------------
// With p(m) = factor^m: bucket 0 = v < p(low). Each magnitude m = low..high holds the values from
// p(m) to p(m+1) - 1 in steps of p(m+1) / s(m), where s(m) = min(steps, p(m+1)); it has
// s(m) - s(m) / factor buckets. The last bucket = v >= p(high+1).
// A program compares v with the powers, one after the other; within a magnitude it is
// first(m) + (v - p(m)) / width(m), with the constants of LogLinearMagnitude.
struct LogLinearBuckets {
  uint32_t factor;
  uint32_t low;
  uint32_t high;
  uint32_t steps;
};
struct LogLinearMagnitude {
  uint64_t from;   // p(m)
  uint64_t until;  // p(m+1)
  uint64_t width;  // Of one bucket.
  uint32_t first;  // Its first bucket.
  uint32_t count;  // Its number of buckets.
};
inline constexpr uint32_t kMagnitudesMax = 64;

// Walks the magnitudes in ascending order: `magnitude(b, first)` is the lowest, `next` the
// following. The caller has checked the spec: p(high+1) < 2^63, steps a multiple of factor.
constexpr LogLinearMagnitude first_magnitude(const LogLinearBuckets& b) {
  uint64_t from = 1;
  for (uint32_t m = 0; m < b.low; ++m)
    from *= b.factor;
  const uint64_t until = from * b.factor;
  const uint64_t split = until < b.steps ? until : b.steps;
  return {.from = from,
          .until = until,
          .width = until / split,
          .first = 1,
          .count = static_cast<uint32_t>(split - split / b.factor)};
}
constexpr LogLinearMagnitude next_magnitude(const LogLinearBuckets& b,
                                            const LogLinearMagnitude& last) {
  const uint64_t until = last.until * b.factor;
  const uint64_t split = until < b.steps ? until : b.steps;
  return {.from = last.until,
          .until = until,
          .width = until / split,
          .first = last.first + last.count,
          .count = static_cast<uint32_t>(split - split / b.factor)};
}
constexpr uint32_t llquantize_bucket(const LogLinearBuckets& b, int64_t value) {
  LogLinearMagnitude magnitude = first_magnitude(b);
  if (value < static_cast<int64_t>(magnitude.from)) return 0;
  const auto v = static_cast<uint64_t>(value);
  for (uint32_t m = b.low; m < b.high && v >= magnitude.until; ++m) {
    magnitude = next_magnitude(b, magnitude);
  }
  if (v >= magnitude.until) return magnitude.first + magnitude.count;
  return magnitude.first + static_cast<uint32_t>((v - magnitude.from) / magnitude.width);
}
constexpr uint32_t llquantize_words(const LogLinearBuckets& b) {
  LogLinearMagnitude magnitude = first_magnitude(b);
  for (uint32_t m = b.low; m < b.high; ++m)
    magnitude = next_magnitude(b, magnitude);
  return magnitude.first + magnitude.count + 1;
}

}  // namespace clew::aggregate
