// SPDX-License-Identifier: Apache-2.0
#include "output/d/text.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace clew::output::d {
namespace {

constexpr size_t kBytesPerLine = 16;

bool is_printable(char character) {
  return character >= ' ' && character <= '~';
}

// The letter behind the backslash; 0 when the character has none.
char escape_letter(char character) {
  constexpr std::string_view kCharacters("\0\a\b\f\n\r\t\v\"\\", 10);
  constexpr std::string_view kLetters = "0abfnrtv\"\\";
  const size_t at = kCharacters.find(character);
  return at == std::string_view::npos ? '\0' : kLetters[at];
}

void append_line(std::span<const uint8_t> bytes, size_t at, std::string& out) {
  out += fmt::format("     {:5x}:", at);
  const std::span<const uint8_t> line =
      bytes.subspan(at, std::min(kBytesPerLine, bytes.size() - at));
  for (const uint8_t byte : line)
    out += fmt::format(" {:02x}", byte);
  out.append(3 * (kBytesPerLine - line.size()) + 2, ' ');
  for (const uint8_t byte : line) {
    const auto character = static_cast<char>(byte);
    out += is_printable(character) ? character : '.';
  }
  out += '\n';
}

}  // namespace

std::string time_text(int64_t seconds, bool is_rfc_822) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (localtime_r(&time, &parts) == nullptr) return {};
  std::array<char, 256> text{};
  const char* const format = is_rfc_822 ? "%a, %d %b %G %T %Z" : "%Y %b %e %T";
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    if (const char letter = escape_letter(character); letter != '\0') {
      result += '\\';
      result += letter;
    } else if (is_printable(character)) {
      result += character;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<uint8_t>(character));
    }
  }
  return result;
}

void append_utf8(std::string& out, uint32_t character) {
  const auto tail = [&](uint32_t shift) {
    out += static_cast<char>(0x80 | ((character >> shift) & 0x3f));
  };
  if (character < 0x80) {
    out += static_cast<char>(character);
  } else if (character < 0x800) {
    out += static_cast<char>(0xc0 | (character >> 6));
    tail(0);
  } else if (character < 0x10000) {
    out += static_cast<char>(0xe0 | (character >> 12));
    tail(6), tail(0);
  } else if (character < 0x110000) {
    out += static_cast<char>(0xf0 | (character >> 18));
    tail(12), tail(6), tail(0);
  } else {
    out += '?';
  }
}

void append_byte_table(std::span<const uint8_t> bytes, std::string& out) {
  if (bytes.empty()) return;
  out += "\n           ";
  for (const char digit : std::string_view("0123456789abcdef")) {
    out += "  ";
    out += digit;
  }
  out += "  0123456789abcdef\n";
  for (size_t at = 0; at < bytes.size(); at += kBytesPerLine)
    append_line(bytes, at, out);
}

}  // namespace clew::output::d
