// SPDX-License-Identifier: Apache-2.0
// Text from a traced program, made safe for a terminal.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "output/format.h"

namespace clew::output {
namespace {

bool continues(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

// Bytes of the UTF-8 sequence at `at`, 0 when it is not valid (Unicode 15, table 3-7).
size_t sequence_size(std::string_view text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  if (first < 0x80) return 1;
  if (!continues(text, at + 1)) return 0;
  const auto second = static_cast<uint8_t>(text[at + 1]);
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (!continues(text, at + 2)) return 0;
  const bool overlong_3 = first == 0xE0 && second < 0xA0;
  const bool surrogate = first == 0xED && second >= 0xA0;
  if (first >= 0xE0 && first <= 0xEF) return overlong_3 || surrogate ? 0 : 3;
  if (!continues(text, at + 3)) return 0;
  const bool overlong_4 = first == 0xF0 && second < 0x90;
  const bool too_large = first == 0xF4 && second >= 0x90;
  if (first >= 0xF0 && first <= 0xF4) return overlong_4 || too_large ? 0 : 4;
  return 0;
}

void append_escape(std::string& result, uint8_t byte) {
  if (byte == '\n') {
    result += "\\n";
  } else if (byte == '\t') {
    result += "\\t";
  } else if (byte == '\r') {
    result += "\\r";
  } else {
    fmt::format_to(std::back_inserter(result), "\\x{:02x}", byte);
  }
}

// C0, DEL, and C1 (U+0080 to U+009F, which some terminals obey).
bool is_control(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<uint8_t>(sequence[1]) < 0xA0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = sequence_size(text, at);
    if (size == 0) return false;
    at += size;
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t size = sequence_size(text, at);
    const std::string_view sequence = text.substr(at, size == 0 ? 1 : size);
    if (size != 0 && !is_control(sequence)) {
      result += sequence;
    } else {
      for (const char byte : sequence)
        append_escape(result, static_cast<uint8_t>(byte));
    }
    at += sequence.size();
  }
  return result;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!continues(text, at)) ++width;
  }
  return width;
}

std::vector<std::string_view> lines_in(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace clew::output
