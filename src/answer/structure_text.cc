// SPDX-License-Identifier: Apache-2.0
#include "answer/structure_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "answer/columns.h"
#include "query/structures.h"

namespace clew::answer {
namespace {

using query::Structure;

constexpr std::string_view kUnknown = "\"...\"";
// What is behind so much is not shown: unions and arrays in each other show bytes many times.
constexpr size_t kShownBytesMax = size_t{64} << 10;

// Bytes above 127 that are no UTF-8 are the output's to replace, as in all text.
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

uint64_t word_of(std::string_view bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
  return word;
}

class StructureWriter {
 public:
  explicit StructureWriter(const query::Query& query) : query_(query) {}

  std::string write(const Structure& what, std::string_view bytes) {
    if (shown_bytes_ > kShownBytesMax) return std::string(kUnknown);
    if (what.kind == Structure::Kind::Record) return record(what, bytes);
    if (what.kind == Structure::Kind::Array && bytes.size() >= what.size_bytes)
      return array(what, bytes);
    std::string text = leaf(what, bytes);
    shown_bytes_ += text.size();
    return text;
  }

 private:
  std::string leaf(const Structure& what, std::string_view bytes) {
    if (bytes.size() < needed(what)) return std::string(kUnknown);
    if (what.kind == Structure::Kind::Number) return number(what, bytes);
    if (what.kind != Structure::Kind::Text) return std::string(kUnknown);
    bytes = bytes.substr(0, what.size_bytes);
    return json_string(bytes.substr(0, bytes.find('\0')));
  }

  static uint64_t needed(const Structure& what) {
    const bool is_bits = what.bit_size != 0;
    return is_bits ? (what.bit_offset + what.bit_size + 7U) / 8U : what.size_bytes;
  }

  // Its own bytes, as far as they are there.
  static std::string_view part(std::string_view bytes, uint64_t offset, const Structure& what) {
    const uint64_t size = std::max(what.size_bytes, needed(what));
    return bytes.substr(std::min<uint64_t>(offset, bytes.size()), size);
  }

  std::string record(const Structure& what, std::string_view bytes) {
    std::string text = "{";
    for (const Structure& member : what.members) {
      if (text.size() > 1) text += ", ";
      const std::string_view own = part(bytes, member.offset_bytes, member);
      const std::string name = json_string(member.name) + ": ";
      shown_bytes_ += name.size();
      text += name + write(member, own);
    }
    return text + '}';
  }

  std::string array(const Structure& what, std::string_view bytes) {
    const Structure& element = what.members[0];
    std::string text = "[";
    for (uint64_t i = 0; i < what.count; ++i) {
      if (i != 0) text += ", ";
      const uint64_t offset = i * element.size_bytes;
      const bool is_over = i == query::kStructureElementsMax || offset >= bytes.size();
      if (is_over) return text + std::string(kUnknown) + ']';
      text += write(element, part(bytes, offset, element));
    }
    return text + ']';
  }

  std::string number(const Structure& what, std::string_view bytes) {
    const query::Type& type = what.type;
    uint64_t bits = word_of(bytes.substr(0, needed(what)));
    if (type.kind == query::TypeKind::Float) return real(bits, type.size_bytes);
    const unsigned size = what.bit_size != 0 ? what.bit_size : 8U * type.size_bytes;
    if (size == 0 || needed(what) > sizeof bits) return std::string(kUnknown);
    if (what.bit_size != 0) bits >>= what.bit_offset;
    if (size < 64) bits &= (uint64_t{1} << size) - 1;
    const bool is_negative = type.is_signed && size < 64 && ((bits >> (size - 1)) & 1) != 0;
    if (is_negative) bits |= ~uint64_t{0} << size;
    if (type.unit == query::Unit::Address) return fmt::format("\"0x{:x}\"", bits);
    if (type.enumeration != 0) return enumerator(bits, type);
    return type.is_signed ? fmt::format("{}", static_cast<int64_t>(bits)) : fmt::format("{}", bits);
  }

  std::string enumerator(uint64_t bits, const query::Type& type) {
    aggregate::Value value = static_cast<int64_t>(bits);
    name_enumerator(query_, value, type);
    const auto* name = std::get_if<std::string>(&value);
    return name == nullptr ? fmt::format("{}", static_cast<int64_t>(bits)) : json_string(*name);
  }

  static std::string real(uint64_t bits, uint32_t size_bytes) {
    if (size_bytes == 4) return real(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    return size_bytes == 8 ? real(std::bit_cast<double>(bits)) : std::string(kUnknown);
  }

  // As many digits as it needs.
  template <typename Real>
  static std::string real(Real value) {
    const std::string text = fmt::format("{}", value);
    return std::isfinite(value) ? text : json_string(text);
  }

  const query::Query& query_;
  size_t shown_bytes_ = 0;
};

}  // namespace

std::string structure_text(const query::Query& query, const Structure& structure,
                           std::string_view bytes) {
  return StructureWriter(query).write(structure, bytes);
}

}  // namespace clew::answer
