// SPDX-License-Identifier: Apache-2.0
// Numbers and bytes in a room that is given, and back; what is read may be anybody's. Varints are
// LEB128, seven bits a byte from the lowest on, and have no other form than their shortest one.
// A failure stays, and whoever writes or reads asks once, at the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace clew::causal {

// Of a number of 64 bits.
inline constexpr size_t kVarintBytesMax = 10;

// Small numbers of either sign become small ones: 0, -1, 1, -2 are 0, 1, 2, 3.
constexpr uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t of_zigzag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

constexpr size_t varint_bytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7)
    ++bytes;
  return bytes;
}

class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> room) : room_(room) {}

  // The lowest `count` bytes of `value`, little endian.
  void put(uint64_t value, size_t count) {
    if (!fits(count)) return;
    std::memcpy(room_.data() + size_, &value, count);
    size_ += count;
  }
  void put_varint(uint64_t value) {
    if (!fits(varint_bytes(value))) return;
    for (; value >= 0x80; value >>= 7)
      room_[size_++] = static_cast<std::byte>(value | 0x80);
    room_[size_++] = static_cast<std::byte>(value);
  }
  void put_bytes(std::span<const std::byte> bytes) {
    if (!fits(bytes.size())) return;
    std::copy_n(bytes.data(), bytes.size(), room_.data() + size_);
    size_ += bytes.size();
  }

  // Something found no room.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  bool fits(size_t count) {
    failed_ = failed_ || count > room_.size() - size_;
    return !failed_;
  }

  std::span<std::byte> room_;
  size_t size_ = 0;
  bool failed_ = false;
};

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // A number of `count` bytes, 8 at most, little endian.
  uint64_t take(size_t count) {
    uint64_t value = 0;
    const auto from = bytes_;
    const size_t taken = take_bytes(count).size();
    if (taken == 0) return 0;
    if (from.size() < sizeof value) {
      std::memcpy(&value, from.data(), taken);
      return value;
    }
    std::memcpy(&value, from.data(), sizeof value);  // One load, then what is not wanted goes.
    return value & (UINT64_MAX >> (64 - 8 * taken));
  }
  uint8_t take_byte() {
    if (failed_ || bytes_.empty()) {
      failed_ = true;
      return 0;
    }
    const std::byte byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return static_cast<uint8_t>(byte);
  }
  uint64_t take_varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = take_byte();
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) {
        const bool is_shortest = byte != 0 || shift == 0;
        const bool fits = shift < 63 || byte <= 1;
        if (!is_shortest || !fits) fail();
        return value;
      }
    }
    fail();
    return 0;
  }
  // Whatever number it is.
  void skip_varint() {
    while (take_byte() >= 0x80) {
    }
  }
  // Empty if there are not so many.
  std::span<const std::byte> take_bytes(size_t count) {
    if (failed_ || count > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  void fail() { failed_ = true; }
  // Something was not there, or not as it should be.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }
  [[nodiscard]] std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace clew::causal
