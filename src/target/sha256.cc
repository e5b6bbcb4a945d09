// SPDX-License-Identifier: Apache-2.0
#include "target/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include <cpuid.h>
#include <immintrin.h>

namespace clew::target {

namespace {

constexpr size_t kRounds = 64;

// The first 32 bits of the fractions of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
alignas(16) constexpr std::array<uint32_t, kRounds> kConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Of the square roots of the first 8 primes (5.3.3).
constexpr std::array<uint32_t, 8> kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// CPUID 7.0 EBX bit 29, and SSSE3 and SSE4.1 for the words around it.
bool has_sha_instructions() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  constexpr uint32_t kSha = 1U << 29;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & kSha) == 0) return false;
  constexpr uint32_t kVectors = bit_SSSE3 | bit_SSE4_1;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kVectors) == kVectors;
}

uint32_t big_endian(const uint8_t* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return __builtin_bswap32(word);
}

void compress_block(std::array<uint32_t, 8>& state, const uint8_t* block) {
  std::array<uint32_t, kRounds> w{};
  for (size_t t = 0; t < 16; ++t)
    w[t] = big_endian(block + 4 * t);
  for (size_t t = 16; t < kRounds; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t t = 0; t < kRounds; ++t) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kConstants[t] + w[t];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = std::exchange(g, std::exchange(f, std::exchange(e, d + t1)));
    d = std::exchange(c, std::exchange(b, std::exchange(a, t1 + t2)));
  }
  const std::array<uint32_t, 8> end = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i)
    state[i] += end[i];
}

// Two registers hold A B E F and C D G H, highest word first; a step does four rounds.
__attribute__((target("sha,sse4.1"))) void compress_by_instructions(std::array<uint32_t, 8>& state,
                                                                    const uint8_t* block) {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* const words = reinterpret_cast<__m128i*>(state.data());
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  const __m128i first_abef = _mm_alignr_epi8(badc, efgh, 8);
  const __m128i first_cdgh = _mm_blend_epi16(efgh, badc, 0xf0);
  __m128i abef = first_abef;
  __m128i cdgh = first_cdgh;
  __m128i w[4];
  for (size_t i = 0; i < 4; ++i) {
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), order);
  }
  for (size_t step = 0; step < kRounds / 4; ++step) {
    const auto* const constants = reinterpret_cast<const __m128i*>(&kConstants[4 * step]);
    __m128i& now = w[step % 4];
    const __m128i& last = w[(step + 3) % 4];
    const __m128i sum = _mm_add_epi32(now, _mm_load_si128(constants));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    now = _mm_sha256msg1_epu32(now, w[(step + 1) % 4]);
    now = _mm_add_epi32(now, _mm_alignr_epi8(last, w[(step + 2) % 4], 4));
    now = _mm_sha256msg2_epu32(now, last);
  }
  abef = _mm_add_epi32(abef, first_abef);
  cdgh = _mm_add_epi32(cdgh, first_cdgh);
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace

Sha256::Sha256(Way way)
    : has_instructions_(way == Way::Fastest && has_sha_instructions()), state_(kInitial) {}

void Sha256::compress(const uint8_t* blocks, size_t count) {
  const auto compress_one = has_instructions_ ? compress_by_instructions : compress_block;
  for (size_t i = 0; i < count; ++i)
    compress_one(state_, blocks + i * kBlockBytes);
}

void Sha256::add(std::span<const uint8_t> bytes) {
  size_bytes_ += bytes.size();
  if (pending_bytes_ != 0) {
    const size_t taken = std::min(bytes.size(), kBlockBytes - pending_bytes_);
    std::copy_n(bytes.begin(), taken, pending_.begin() + static_cast<ptrdiff_t>(pending_bytes_));
    pending_bytes_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_bytes_ < kBlockBytes) return;
    compress(pending_.data(), 1);
  }
  compress(bytes.data(), bytes.size() / kBlockBytes);
  bytes = bytes.subspan(bytes.size() / kBlockBytes * kBlockBytes);
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_bytes_ = bytes.size();
}

// A bit, zeroes up to the last eight bytes of a block, and there the size in bits (5.1.1).
Digest Sha256::finish() {
  const uint64_t bits = __builtin_bswap64(8 * size_bytes_);
  std::array<uint8_t, kBlockBytes> padding = {0x80};
  const size_t rest = (pending_bytes_ + 1 + sizeof bits) % kBlockBytes;
  add(std::span(padding).first(1 + (kBlockBytes - rest) % kBlockBytes));
  std::array<uint8_t, sizeof bits> size{};
  std::memcpy(size.data(), &bits, sizeof bits);
  add(size);
  Digest digest{};
  for (size_t i = 0; i < state_.size(); ++i) {
    const uint32_t word = __builtin_bswap32(state_[i]);
    std::memcpy(&digest[4 * i], &word, sizeof word);
  }
  return digest;
}

std::string hex_of(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace clew::target
