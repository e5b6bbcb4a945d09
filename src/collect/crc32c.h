// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720, appendix B.4): by the processor's instruction where it has one
// (SSE4.2, eight bytes in three cycles), else bytewise with a table, 0.4 GB/s.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <nmmintrin.h>

namespace clew::collect {

namespace detail {

constexpr std::array<uint32_t, 256> make_crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78 : 0);
    table[byte] = value;
  }
  return table;
}
inline constexpr std::array<uint32_t, 256> kCrc32cTable = make_crc32c_table();

inline uint32_t crc32c_by_table(uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes)
    crc = (crc >> 8) ^ kCrc32cTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return crc;
}

[[gnu::target("sse4.2")]] inline uint32_t crc32c_by_instruction(uint32_t crc,
                                                                std::span<const std::byte> bytes) {
  uint64_t wide = crc;
  size_t at = 0;
  for (; bytes.size() - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; at < bytes.size(); ++at)
    crc = _mm_crc32_u8(crc, static_cast<uint8_t>(bytes[at]));
  return crc;
}

}  // namespace detail

inline uint32_t crc32c(std::span<const std::byte> bytes) {
  constexpr uint32_t kSeed = 0xFFFF'FFFF;
  return __builtin_cpu_supports("sse4.2") != 0 ? ~detail::crc32c_by_instruction(kSeed, bytes)
                                               : ~detail::crc32c_by_table(kSeed, bytes);
}

}  // namespace clew::collect
