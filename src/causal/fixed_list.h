// SPDX-License-Identifier: Apache-2.0
// A list in a fixed room: no allocation, and a copy copies what is used. What finds no room is the
// caller's to count.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include "base/assert.h"

namespace clew::causal {

template <typename T, size_t kMax>
class FixedList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  FixedList() {}
  FixedList(const FixedList& other) { *this = other; }
  FixedList& operator=(const FixedList& other) {
    if (this == &other) return *this;
    std::copy_n(other.values_.data(), other.size_, values_.data());
    size_ = other.size_;
    return *this;
  }
  ~FixedList() = default;

  // False, and nothing happens, when there is no room.
  [[nodiscard]] bool push(const T& value) {
    if (size_ == kMax) return false;
    values_[size_++] = value;
    return true;
  }
  [[nodiscard]] bool append(std::span<const T> values) {
    if (values.size() > kMax - size_) return false;
    std::copy_n(values.data(), values.size(), values_.data() + size_);
    size_ += values.size();
    return true;
  }
  // Puts `values` where `count` values from `at` on are.
  [[nodiscard]] bool replace(size_t at, size_t count, std::span<const T> values) {
    CLEW_ASSERT(at + count <= size_);
    if (values.size() > count && values.size() - count > kMax - size_) return false;
    T* const from = values_.data() + at + count;
    T* const to = values_.data() + at + values.size();
    const size_t behind = size_ - at - count;
    if (to < from) std::copy(from, from + behind, to);
    if (to > from) std::copy_backward(from, from + behind, to + behind);
    std::copy_n(values.data(), values.size(), values_.data() + at);
    size_ = at + values.size() + behind;
    return true;
  }
  void cut(size_t size) {
    CLEW_ASSERT(size <= size_);
    size_ = size;
  }
  void clear() { size_ = 0; }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T& operator[](size_t index) { return values_[index]; }
  [[nodiscard]] const T& operator[](size_t index) const { return values_[index]; }
  [[nodiscard]] T& back() { return values_[size_ - 1]; }
  [[nodiscard]] const T& back() const { return values_[size_ - 1]; }
  [[nodiscard]] T* begin() { return values_.data(); }
  [[nodiscard]] T* end() { return values_.data() + size_; }
  [[nodiscard]] const T* begin() const { return values_.data(); }
  [[nodiscard]] const T* end() const { return values_.data() + size_; }
  [[nodiscard]] std::span<const T> values() const { return {values_.data(), size_}; }
  [[nodiscard]] std::span<T> room() { return values_; }
  // What was written to `room`.
  void set_size(size_t size) {
    CLEW_ASSERT(size <= kMax);
    size_ = size;
  }

  friend bool operator==(const FixedList& a, const FixedList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  size_t size_ = 0;
  union {  // So that nobody fills the room before it is used.
    std::array<T, kMax> values_;
  };
};

}  // namespace clew::causal
