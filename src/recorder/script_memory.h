// SPDX-License-Identifier: Apache-2.0
// The memory of a process whose interpreter is asked for its calls: read by pages, each once, and
// bounded as a whole. What is in it may be anything, so nothing that follows its pointers goes on
// for longer than this lets it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>

namespace clew::recorder {

class ScriptMemory {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kPagesMax = 4096;  // That are looked at: some 10 ms.
  static constexpr size_t kBytesMax = size_t{8} << 20;
  static constexpr size_t kReadsMax = size_t{1} << 20;

  // All or nothing. Of one page, as a rule.
  using Read = std::function<bool(uint64_t address, std::span<uint8_t> bytes)>;

  explicit ScriptMemory(Read read) : read_(std::move(read)) {}

  // All or nothing: also nothing where it has given all that it gives.
  bool read(uint64_t address, std::span<uint8_t> bytes);

  template <typename T>
  std::optional<T> at(uint64_t address) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::array<uint8_t, sizeof(T)> bytes{};
    if (!read(address, bytes)) return std::nullopt;
    T value{};
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

 private:
  using Page = std::array<uint8_t, kPageBytes>;
  const Page* page_of(uint64_t number);

  Read read_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;  // Null: it is not there.
  size_t bytes_left_ = kBytesMax;
  size_t reads_left_ = kReadsMax;
};

}  // namespace clew::recorder
