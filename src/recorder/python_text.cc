// SPDX-License-Identifier: Apache-2.0
#include "recorder/python_text.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace clew::recorder {

namespace {

// PyASCIIObject; `state` has interned 2 bits, kind 3, compact 1, ascii 1.
struct TextHead {
  uint64_t references;
  uint64_t type;
  uint64_t length;  // In characters.
  uint64_t hash;
  uint32_t state;
  uint32_t padding;
  uint64_t wide;
};
static_assert(sizeof(TextHead) == 48);

constexpr unsigned kKindShift = 2;
constexpr uint32_t kKindMask = 7;  // Bytes of a character.
constexpr uint32_t kIsCompact = 1U << 5;
constexpr uint32_t kIsAscii = 1U << 6;
constexpr uint64_t kCompactBytes = 72;  // sizeof(PyCompactUnicodeObject)

constexpr char32_t kNoCharacter = 0xfffd;

bool is_character(char32_t c) {
  const bool is_control = c < ' ' || (c >= 0x7f && c < 0xa0);
  const bool is_surrogate = c >= 0xd800 && c < 0xe000;
  return !is_control && !is_surrogate && c <= 0x10ffff;
}

char byte_of(char32_t bits) {
  return static_cast<char>(static_cast<unsigned char>(bits));
}

void add_utf8(char32_t c, std::string& to) {
  if (!is_character(c)) c = kNoCharacter;
  const auto rest = [&](unsigned shift) { to += byte_of(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    to += byte_of(c);
  } else if (c < 0x800) {
    to += byte_of(0xc0 | c >> 6);
    rest(0);
  } else if (c < 0x10000) {
    to += byte_of(0xe0 | c >> 12);
    rest(6);
    rest(0);
  } else {
    to += byte_of(0xf0 | c >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

}  // namespace

// Others than compact ones come from a form of the C API that is deprecated, and are no names.
std::optional<std::string> PythonText::read(uint64_t object) {
  constexpr std::string_view kMore = "…";
  const auto head = memory_.at<TextHead>(object);
  if (!head || head->type != type_ || (head->state & kIsCompact) == 0) return std::nullopt;
  const size_t width = head->state >> kKindShift & kKindMask;
  if (width != 1 && width != 2 && width != 4) return std::nullopt;
  const uint64_t from = (head->state & kIsAscii) != 0 ? sizeof(TextHead) : kCompactBytes;
  std::vector<uint8_t> bytes(std::min(head->length, kCharactersMax) * width);
  if (!memory_.read(object + from, bytes)) return std::nullopt;
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += width) {
    uint32_t character = 0;
    std::memcpy(&character, bytes.data() + i, width);
    add_utf8(character, text);
  }
  if (head->length > kCharactersMax) text += kMore;
  return text;
}

}  // namespace clew::recorder
