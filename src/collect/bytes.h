// SPDX-License-Identifier: Apache-2.0
// Values of fixed size to bytes and back, little endian as x86-64 has them; what is read may be
// anybody's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace clew::collect {

template <typename T>
void append(std::vector<std::byte>& bytes, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto view = std::as_bytes(values);
  bytes.insert(bytes.end(), view.begin(), view.end());
}

template <typename T>
void append(std::vector<std::byte>& bytes, const T& value) {
  append(bytes, std::span<const T>(&value, 1));
}

// Takes values off the front of some bytes; a value that is not there sets `failed`.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (bytes_.size() < sizeof(T)) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }

  // Takes no memory for what is not there.
  template <typename T>
  std::vector<T> take_many(uint64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > bytes_.size() / sizeof(T)) failed_ = true;
    if (failed_) return {};
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data(), count * sizeof(T));
    bytes_ = bytes_.subspan(count * sizeof(T));
    return values;
  }

  [[nodiscard]] std::span<const std::byte> rest() const { return bytes_; }
  [[nodiscard]] bool failed() const { return failed_; }
  void fail() { failed_ = true; }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace clew::collect
