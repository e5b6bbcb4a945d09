// SPDX-License-Identifier: Apache-2.0
#include "ledger/one_line.h"

#include <cstdint>

#include <fmt/format.h>

namespace clew::ledger {
namespace {

struct Character {
  uint32_t code = 0;
  size_t size_bytes = 0;  // 0: the text begins with no character of UTF-8.
};

Character first_of(std::string_view text) {
  const auto at = [&text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return {first, 1};
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return {};
  uint32_t code = first & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (at(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[size] || code > 0x10FFFF || is_surrogate) return {};
  return {code, size};
}

bool is_shown(uint32_t code) {
  const auto is_within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return code >= 0x20 && !is_within(0x7F, 0x9F) && code != 0xAD && code != 0x61C &&
         !is_within(0x200B, 0x200F) && !is_within(0x2028, 0x202E) && !is_within(0x2060, 0x206F) &&
         code != 0xFEFF && !is_within(0xFFF9, 0xFFFB) && !is_within(0xE0000, 0xE0FFF);
}

}  // namespace

std::string one_line(std::string_view text, size_t characters_max) {
  std::string line;
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == characters_max) return line + "…";
    const Character next = first_of(text);
    const size_t size = next.size_bytes == 0 ? 1 : next.size_bytes;
    if (next.size_bytes != 0 && is_shown(next.code)) {
      line += text.substr(0, size);
    } else if (text[0] == '\n' || text[0] == '\t') {
      line += text[0] == '\n' ? "\\n" : "\\t";
    } else {
      for (const char byte : text.substr(0, size))
        line += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    }
    text.remove_prefix(size);
  }
  return line;
}

}  // namespace clew::ledger
