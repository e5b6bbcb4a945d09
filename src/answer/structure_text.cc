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
    if (what.kind != Structure::Kind::Record && bytes.size() < needed(what))
      return std::string(kUnknown);
    switch (what.kind) {
      case Structure::Kind::Number:
        return number(what, bytes);
      case Structure::Kind::Text:
        bytes = bytes.substr(0, what.size_bytes);
        return json_string(bytes.substr(0, bytes.find('\0')));
      case Structure::Kind::Record:
        return record(what, bytes);
      case Structure::Kind::Array:
        return array(what, bytes);
      case Structure::Kind::Unknown:
        break;
    }
    return std::string(kUnknown);
  }

 private:
  static uint64_t needed(const Structure& what) {
    const bool is_bits = what.bit_size != 0;
    return is_bits ? (what.bit_offset + what.bit_size + 7U) / 8U : what.size_bytes;
  }

  std::string record(const Structure& what, std::string_view bytes) {
    std::string text = "{";
    for (const Structure& member : what.members) {
      if (text.size() > 1) text += ", ";
      const std::string_view rest = bytes.substr(std::min(member.offset_bytes, bytes.size()));
      text += json_string(member.name) + ": " + write(member, rest);
    }
    return text + '}';
  }

  std::string array(const Structure& what, std::string_view bytes) {
    const Structure& element = what.members[0];
    std::string text = "[";
    for (uint64_t i = 0; i < what.count; ++i) {
      if (i != 0) text += ", ";
      if (i == query::kStructureElementsMax) return text + std::string(kUnknown) + ']';
      text += write(element, bytes.substr(i * element.size_bytes));
    }
    return text + ']';
  }

  std::string number(const Structure& what, std::string_view bytes) {
    const query::Type& type = what.type;
    uint64_t bits = word_of(bytes.substr(0, needed(what)));
    if (type.kind == query::TypeKind::Float) return real(bits, type.size_bytes);
    const unsigned size = what.bit_size != 0 ? what.bit_size : 8U * type.size_bytes;
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
    const double value = size_bytes == 4 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                         : std::bit_cast<double>(bits);
    return std::isfinite(value) ? fmt::format("{:g}", value)
                                : json_string(fmt::format("{}", value));
  }

  const query::Query& query_;
};

}  // namespace

std::string structure_text(const query::Query& query, const Structure& structure,
                           std::string_view bytes) {
  return StructureWriter(query).write(structure, bytes);
}

}  // namespace clew::answer
