// SPDX-License-Identifier: Apache-2.0
#include "recorder/python_lines.h"

#include <algorithm>

#include "target/byte_reader.h"

namespace clew::recorder {

namespace {

constexpr uint8_t kBegins = 0x80;  // Of an entry.
constexpr unsigned kOneLine0 = 10;
constexpr unsigned kOneLine2 = 12;
constexpr unsigned kNoColumns = 13;
constexpr unsigned kLong = 14;
constexpr unsigned kNoLine = 15;

// More bits than a line has are lost.
int64_t read_signed(target::ByteReader& in) {
  constexpr unsigned kBits = 6;
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += kBits) {
    const auto byte = in.read<uint8_t>();
    if (shift < 32) value |= static_cast<uint64_t>(byte & 0x3f) << shift;
    if ((byte & 0x40) == 0 || in.failed()) break;
  }
  const auto size = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? -size : size;
}

uint32_t line_or_none(int64_t line) {
  return line > 0 && line <= INT32_MAX ? static_cast<uint32_t>(line) : 0;
}

}  // namespace

PythonLines::PythonLines(std::span<const uint8_t> table, int32_t first_line) {
  target::ByteReader in(table);
  int64_t line = first_line;
  uint32_t end = 0;
  while (!in.at_end()) {
    const auto head = in.read<uint8_t>();
    if ((head & kBegins) == 0) continue;  // Of the entry before.
    const unsigned kind = (head >> 3) & 15;
    if (kind == kNoColumns || kind == kLong) line += read_signed(in);
    if (kind >= kOneLine0 && kind <= kOneLine2) line += kind - kOneLine0;
    end += kPythonUnitBytes * ((head & 7U) + 1);
    ranges_.push_back({.end = end, .line = kind == kNoLine ? 0 : line_or_none(line)});
  }
}

uint32_t PythonLines::at(uint64_t offset) const {
  const auto range =
      std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                       [](uint64_t value, const Range& one) { return value < one.end; });
  return range == ranges_.end() ? 0 : range->line;
}

}  // namespace clew::recorder
