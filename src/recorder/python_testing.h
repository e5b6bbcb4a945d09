// SPDX-License-Identifier: Apache-2.0
// A memory that is built as CPython 3.11 would have it, for tests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "recorder/python_calls.h"

namespace clew::recorder::python_testing {

inline constexpr uint64_t kCode = 0x10000;
inline constexpr uint64_t kRuntime = 0x11000;
inline constexpr uint64_t kVersionPlace = 0x12000;
inline constexpr uint64_t kText = 0x13000;
inline constexpr uint64_t kBytes = 0x14000;
inline constexpr uint64_t kEvaluates = 0x15000;
inline constexpr uint64_t kFirstInterpreter = 0x20000;
inline constexpr uint64_t kObjects = 0x100000;
inline constexpr int32_t kThread = 4711;

class PythonWorld {
  static constexpr size_t kPageBytes = ScriptMemory::kPageBytes;

 public:
  static constexpr uint64_t kObjectBytes = 0x1000;

  PythonWorld() {
    put<uint64_t>(kVersionPlace, 0x030b02f0);
    put_type(kCode, 184, 2);
    put_type(kText, 80, 0);
    put_type(kBytes, 33, 1);
    put<uint64_t>(kRuntime + 40, kFirstInterpreter);
    put<uint64_t>(kFirstInterpreter + 40, kRuntime);
  }

  template <typename T>
  void put(uint64_t address, T value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    for (size_t i = 0; i < sizeof(T); ++i)
      pages_[(address + i) / kPageBytes][(address + i) % kPageBytes] = from[i];
  }

  // Room for an object, which nothing else has.
  uint64_t make() { return std::exchange(next_, next_ + kObjectBytes); }

  uint64_t text(const std::string& ascii) {
    constexpr uint32_t kCompactAscii = 1U << 2 | 1U << 5 | 1U << 6;
    const uint64_t at = object(kText, ascii.size());
    put<uint32_t>(at + 32, kCompactAscii);
    put_bytes(at + 48, ascii);
    return at;
  }
  uint64_t wide_text(const std::u32string& characters) {
    constexpr uint32_t kCompact4 = 4U << 2 | 1U << 5;
    const uint64_t at = object(kText, characters.size());
    put<uint32_t>(at + 32, kCompact4);
    for (size_t i = 0; i < characters.size(); ++i)
      put<char32_t>(at + 72 + 4 * i, characters[i]);
    return at;
  }
  // Of 16 units, two to a line.
  uint64_t code(uint64_t name, uint64_t file, int32_t first_line) {
    const uint64_t lines = object(kBytes, 8);
    for (uint64_t i = 0; i < 8; ++i)
      put<uint8_t>(lines + 32 + i, i == 0 ? 0xd1 : 0xd9);  // In the same line; in the next.
    const uint64_t at = object(kCode, 16);
    put(at + 72, first_line);
    put(at + 112, file);
    put(at + 128, name);
    put(at + 136, lines);
    return at;
  }
  // That runs the unit.
  uint64_t frame(uint64_t of_code, int64_t unit, uint64_t previous, bool is_entry) {
    const uint64_t at = make();
    put(at + 32, of_code);
    put(at + 48, previous);
    put<uint64_t>(at + 56, of_code + 184 + static_cast<uint64_t>(2 * unit));
    put<uint8_t>(at + 68, is_entry ? 1 : 0);
    put<uint64_t>(at, 0);
    put<uint32_t>(at + 64, 0);
    return at;
  }
  void thread(int32_t number, uint64_t current) {
    const uint64_t at = make();
    const uint64_t loop = make();
    put(at + 8, first_thread_);
    put(at + 16, kFirstInterpreter);
    put(at + 56, loop);
    put<uint64_t>(at + 160, static_cast<uint64_t>(number));
    put(loop + 8, current);
    first_thread_ = at;
    put(kFirstInterpreter + 16, at);
  }

  // All of it is there but the first page.
  Scripts read(const std::array<uint64_t, 6>& places = {kCode, kRuntime, kVersionPlace, kText,
                                                        kBytes, kEvaluates}) {
    ScriptMemory memory([this](uint64_t address, std::span<uint8_t> to) {
      std::fill(to.begin(), to.end(), uint8_t{0});
      const auto page = pages_.find(address / kPageBytes);
      if (page != pages_.end()) std::copy_n(page->second.begin(), to.size(), to.begin());
      return address != 0;
    });
    const std::array<int32_t, 1> threads = {kThread};
    Scripts scripts;
    read_python_calls({.places = places, .threads = threads}, memory, scripts);
    return scripts;
  }

 private:
  void put_type(uint64_t at, uint64_t basic_size, uint64_t item_size) {
    put(at + 32, basic_size);
    put(at + 40, item_size);
  }
  uint64_t object(uint64_t type, uint64_t size) {
    const uint64_t at = make();
    put(at + 8, type);
    put(at + 16, size);
    return at;
  }
  void put_bytes(uint64_t at, const std::string& text) {
    for (size_t i = 0; i < text.size(); ++i)
      put(at + i, text[i]);
  }

  std::unordered_map<uint64_t, std::array<uint8_t, kPageBytes>> pages_;
  uint64_t next_ = kObjects;
  uint64_t first_thread_ = 0;
};

}  // namespace clew::recorder::python_testing
