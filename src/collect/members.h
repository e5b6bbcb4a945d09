// SPDX-License-Identifier: Apache-2.0
// Structs to bytes and back, member by member, in the order in which Shape names them; what is read
// may be anybody's. Shape has
//     static auto members(T& value)          a tie of all members of a struct, const or not
//     static constexpr E last(E)             the last value of an enumeration
// and, for types that are neither structs nor what stands below,
//     static void put(MemberWriter<Shape>&, const T&)
//     static void take(MemberReader<Shape>&, T&)
// A text, a list and a map have their count in front of them, in 32 bits; a map's keys ascend, so
// that a value has one way to be written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "collect/bytes.h"

namespace clew::collect {

template <typename Shape>
class MemberWriter {
 public:
  template <typename T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<uint8_t>(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      append(bytes_, value);
    } else if constexpr (requires { Shape::put(*this, value); }) {
      Shape::put(*this, value);
    } else {
      std::apply([this](const auto&... member) { (this->put(member), ...); },
                 Shape::members(value));
    }
  }
  template <size_t kSize>
  void put(const std::array<std::byte, kSize>& bytes) {
    append(bytes_, std::span<const std::byte>(bytes));
  }
  void put(const std::string& text) {
    put_count(text.size());
    append(bytes_, std::span<const char>(text));
  }
  void put(const std::vector<std::byte>& bytes) {
    put_count(bytes.size());
    append(bytes_, std::span<const std::byte>(bytes));
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    put_count(list.size());
    for (const T& one : list)
      put(one);
  }
  template <typename T, typename Less>
  void put(const std::map<std::string, T, Less>& map) {
    put_count(map.size());
    for (const auto& [key, value] : map) {
      put(key);
      put(value);
    }
  }
  // Without their count.
  void put_words(std::span<const uint64_t> words) { append(bytes_, words); }

  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void put_count(size_t count) {
    CLEW_ASSERT(count <= UINT32_MAX);
    put(static_cast<uint32_t>(count));
  }

  std::vector<std::byte> bytes_;
};

// After a failure nothing is read any more, and what `take` has left is not to be used.
template <typename Shape>
class MemberReader {
 public:
  explicit MemberReader(std::span<const std::byte> bytes) : cursor_(bytes) {}

  template <typename T>
  void take(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = cursor_.take<uint8_t>();
      if (byte > 1) cursor_.fail();
      value = byte == 1;
    } else if constexpr (std::is_enum_v<T>) {
      value = cursor_.take<T>();
      if (value > Shape::last(value)) cursor_.fail();
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = cursor_.take<T>();
    } else if constexpr (requires { Shape::take(*this, value); }) {
      Shape::take(*this, value);
    } else {
      std::apply([this](auto&... member) { (this->take(member), ...); }, Shape::members(value));
    }
  }
  template <size_t kSize>
  void take(std::array<std::byte, kSize>& bytes) {
    bytes = cursor_.take<std::array<std::byte, kSize>>();
  }
  void take(std::string& text) {
    const std::vector<char> characters = cursor_.take_many<char>(take<uint32_t>());
    text.assign(characters.begin(), characters.end());
  }
  void take(std::vector<std::byte>& bytes) {
    bytes = cursor_.take_many<std::byte>(take<uint32_t>());
  }
  // Each element takes bytes, so a count that is not true ends soon.
  template <typename T>
  void take(std::vector<T>& list) {
    const auto count = take<uint32_t>();
    for (uint32_t i = 0; i < count && !failed(); ++i)
      take(list.emplace_back());
  }
  template <typename T, typename Less>
  void take(std::map<std::string, T, Less>& map) {
    const auto count = take<uint32_t>();
    for (uint32_t i = 0; i < count && !failed(); ++i) {
      std::string key;
      take(key);
      const bool is_next = map.empty() || map.rbegin()->first < key;
      if (!is_next) cursor_.fail();
      take(map[key]);
    }
  }
  template <typename T>
  T take() {
    T value{};
    take(value);
    return value;
  }
  std::vector<uint64_t> take_words(uint64_t count) { return cursor_.take_many<uint64_t>(count); }

  void fail() { cursor_.fail(); }
  [[nodiscard]] bool failed() const { return cursor_.failed(); }
  [[nodiscard]] std::span<const std::byte> rest() const { return cursor_.rest(); }

 private:
  Cursor cursor_;
};

}  // namespace clew::collect
