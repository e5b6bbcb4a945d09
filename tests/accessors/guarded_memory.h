// SPDX-License-Identifier: Apache-2.0
// Test support: memory whose last byte is the last one before a page that nobody may touch. In
// front of its first one is another such page, or less than a page of paint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace clew::accessors {

class GuardedMemory {
 public:
  // `size` is rounded up to a multiple of 8. `address` is the first byte's, when it is not 0; then
  // the size must be a multiple of a page's.
  explicit GuardedMemory(size_t size, uint64_t address = 0);
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  [[nodiscard]] std::span<uint8_t> bytes() const { return {first_, size_}; }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(first_); }
  template <typename Value>
  [[nodiscard]] Value* as() const {
    return reinterpret_cast<Value*>(first_);
  }
  // From now on nobody writes these bytes, which must be whole pages.
  void forbid_writes(size_t offset, size_t size) const;
  void forbid_writes() const;
  // Zeroes all of it, and gives the pages back.
  void clear() const;
  [[nodiscard]] bool has_paint() const;

 private:
  void paint() const;

  uint8_t* pages_ = nullptr;  // Behind the first guard.
  size_t pages_size_ = 0;
  uint8_t* first_ = nullptr;
  size_t size_ = 0;
};

}  // namespace clew::accessors
