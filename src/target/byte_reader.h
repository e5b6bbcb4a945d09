// SPDX-License-Identifier: Apache-2.0
// A cursor over foreign bytes (ELF, DWARF call frame data, exception tables, cache files) that
// never leaves them: a read past the end gives zero and marks the cursor as failed, once and for
// all. So a parser reads a whole record and asks once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace clew::target {

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes, size_t offset = 0) : bytes_(bytes) {
    seek(offset);
  }

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return failed_ || offset_ == bytes_.size(); }
  [[nodiscard]] size_t offset() const { return offset_; }
  [[nodiscard]] size_t remaining() const { return failed_ ? 0 : bytes_.size() - offset_; }

  void seek(size_t offset) {
    if (offset > bytes_.size()) {
      failed_ = true;
    } else {
      offset_ = offset;
    }
  }
  void skip(uint64_t count) {
    if (count > remaining()) {
      failed_ = true;
    } else {
      offset_ += count;
    }
  }

  template <typename T>
  T read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (sizeof(T) > remaining()) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  uint64_t read_uleb128() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = read<uint8_t>();
      if (failed_) return 0;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  int64_t read_sleb128() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = read<uint8_t>();
      if (failed_) return 0;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) != 0) continue;
      const bool negative = (byte & 0x40) != 0 && shift + 7 < 64;
      if (negative) value |= ~uint64_t{0} << (shift + 7);
      return static_cast<int64_t>(value);
    }
  }

  // Up to the next NUL, which must be there.
  std::string_view read_string() {
    const auto* begin = reinterpret_cast<const char*>(bytes_.data() + offset_);
    const void* nul = remaining() == 0 ? nullptr : std::memchr(begin, 0, remaining());
    if (nul == nullptr) {
      failed_ = true;
      return {};
    }
    const auto size = static_cast<size_t>(static_cast<const char*>(nul) - begin);
    offset_ += size + 1;
    return {begin, size};
  }

  std::span<const uint8_t> read_bytes(uint64_t count) {
    if (count > remaining()) {
      failed_ = true;
      return {};
    }
    const auto result = bytes_.subspan(offset_, count);
    offset_ += count;
    return result;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t offset_ = 0;
  bool failed_ = false;
};

}  // namespace clew::target
