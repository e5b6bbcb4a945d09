// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720, appendix B.4), bytewise with a table: 0.4 GB/s is far above what
// a spill file takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace detail

inline uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t crc = 0xFFFF'FFFF;
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ detail::kCrc32cTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  }
  return ~crc;
}

}  // namespace clew::collect
