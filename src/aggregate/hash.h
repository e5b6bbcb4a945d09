// SPDX-License-Identifier: Apache-2.0
// The hash of a key: h = kHashSeed; for each word: h = hash_step(h, word). Tables (abi/region.h,
// with | 1), distinct() and the query function `hash` use it; probe programs compute the same. Two
// multiplications, as in MurmurHash3's finaliser (public domain), one application per word.
#pragma once

#include <cstdint>
#include <span>

namespace clew::aggregate {

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

}  // namespace clew::aggregate
