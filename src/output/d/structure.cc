// SPDX-License-Identifier: Apache-2.0
#include "output/d/structure.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "output/d/text.h"

namespace clew::output::d {
namespace {

using query::d::Type;
using query::d::TypeId;
using query::d::TypeKind;
using query::d::TypeMember;
using query::d::TypeTable;

constexpr size_t kIndent = 4;
constexpr size_t kDepthMax = 32;

bool is_zero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

// The `bits` bits from bit `offset` on, with the sign of the type.
uint64_t bits_at(std::span<const uint8_t> bytes, uint64_t offset, uint32_t bits, bool is_signed) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < bits; ++i) {
    const uint64_t at = offset + i;
    const uint64_t bit = at / 8 < bytes.size() ? (bytes[at / 8] >> (at % 8)) & 1U : 0U;
    value |= bit << i;
  }
  const bool is_negative = is_signed && bits > 0 && bits < 64 && ((value >> (bits - 1)) & 1) != 0;
  return is_negative ? value | (~uint64_t{0} << bits) : value;
}

class Writer {
 public:
  Writer(const TypeTable& types, std::string& out) : types_(types), out_(out) {}

  void value(TypeId id, std::span<const uint8_t> bytes, size_t depth) {
    const Type& type = types_.stripped(id);
    cast(id);
    if (depth > kDepthMax) {
      out_ += "...";
      return;
    }
    switch (type.kind) {
      case TypeKind::Struct:
      case TypeKind::Union:
        members(type, bytes, depth);
        return;
      case TypeKind::Array:
        array(type, bytes, depth);
        return;
      case TypeKind::String:
        text(bytes);
        return;
      case TypeKind::Float:
        real(bytes);
        return;
      case TypeKind::Integer:
      case TypeKind::Enum:
      case TypeKind::Pointer:
        number(type, bits_at(bytes, 0, 8 * std::min(type.size_bytes, 8U), type.is_signed));
        return;
      case TypeKind::Void:
      case TypeKind::Typedef:
      case TypeKind::Function:
      case TypeKind::Forward:
      case TypeKind::Dynamic:
        out_ += "...";
        return;
    }
  }

 private:
  // "(struct foo) " in front of braces, "(int)" in front of a value; "(union) " has no name.
  void cast(TypeId id) {
    const Type& type = types_.at(id);
    const Type& stripped = types_.stripped(id);
    const bool is_anonymous = type.name.empty();
    const bool has_braces = stripped.kind == TypeKind::Struct || stripped.kind == TypeKind::Union ||
                            (stripped.kind == TypeKind::Array && !is_characters(stripped));
    out_ += '(';
    if (type.kind == TypeKind::Struct && is_anonymous) {
      out_ += "struct";
    } else if (type.kind == TypeKind::Union && is_anonymous) {
      out_ += "union";
    } else if (type.kind == TypeKind::Enum && is_anonymous) {
      out_ += "enum";
    } else {
      out_ += types_.name_of(id);
    }
    out_ += has_braces ? ") " : ")";
  }

  [[nodiscard]] bool is_characters(const Type& array) const {
    const Type& element = types_.stripped(array.target);
    return element.kind == TypeKind::Integer && element.is_character && element.size_bytes == 1;
  }

  void members(const Type& type, std::span<const uint8_t> bytes, size_t depth) {
    out_ += "{\n";
    for (const TypeMember& member : type.members) {
      if (member.offset_bits / 8 >= bytes.size()) {
        indent(depth + 1);
        out_ += "...\n";
        break;
      }
      this->member(member, bytes, depth + 1);
    }
    indent(depth);
    out_ += '}';
  }

  void member(const TypeMember& member, std::span<const uint8_t> bytes, size_t depth) {
    const Type& type = types_.stripped(member.type);
    const std::span<const uint8_t> from = bytes.subspan(member.offset_bits / 8);
    const std::span<const uint8_t> own =
        from.first(std::min<size_t>(from.size(), types_.size_of(member.type)));
    const uint64_t bits = bits_at(bytes, member.offset_bits, member.bit_size, type.is_signed);
    if (member.bit_size != 0 ? bits == 0 : is_zero(own)) return;
    indent(depth);
    if (!member.name.empty()) out_ += '.' + member.name + " = ";
    if (member.bit_size != 0) {
      cast(member.type);
      number(type, bits);
    } else {
      value(member.type, own, depth);
    }
    out_ += ",\n";
  }

  void array(const Type& type, std::span<const uint8_t> bytes, size_t depth) {
    if (is_characters(type)) {
      text(bytes);
      return;
    }
    const size_t element_bytes = std::max<size_t>(types_.size_of(type.target), 1);
    // Zeros at the end say nothing.
    while (bytes.size() >= element_bytes && is_zero(bytes.last(element_bytes)))
      bytes = bytes.first(bytes.size() - element_bytes);
    out_ += "[\n";
    for (size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
      indent(depth + 1);
      value(type.target, bytes.subspan(at, element_bytes), depth + 1);
      out_ += ",\n";
    }
    indent(depth);
    out_ += ']';
  }

  void text(std::span<const uint8_t> bytes) {
    const auto end = std::find(bytes.begin(), bytes.end(), uint8_t{0});
    out_ += '"' + escaped(std::string(bytes.begin(), end)) + '"';
  }

  void real(std::span<const uint8_t> bytes) {
    if (bytes.size() == sizeof(float)) {
      float value = 0;
      std::memcpy(&value, bytes.data(), sizeof value);
      out_ += fmt::format("{:g}", value);
    } else if (bytes.size() >= sizeof(double)) {
      double value = 0;
      std::memcpy(&value, bytes.data(), sizeof value);
      out_ += fmt::format("{:g}", value);
    }
  }

  void number(const Type& type, uint64_t value) {
    if (type.kind == TypeKind::Pointer) {
      out_ += fmt::format("{:#x}", value);
      return;
    }
    const auto enumerator = std::find_if(
        type.enumerators.begin(), type.enumerators.end(),
        [&](const auto& candidate) { return static_cast<uint64_t>(candidate.value) == value; });
    if (enumerator != type.enumerators.end()) {
      out_ += enumerator->name;
    } else if (type.name == "char" && value >= ' ' && value <= '~') {
      out_ += fmt::format("'{}'", static_cast<char>(value));
    } else if (type.is_signed) {
      out_ += fmt::format("{}", static_cast<int64_t>(value));
    } else {
      out_ += fmt::format("{}", value);
    }
  }

  void indent(size_t depth) { out_.append(depth * kIndent, ' '); }

  const TypeTable& types_;
  std::string& out_;
};

}  // namespace

void append_structure(const TypeTable& types, TypeId type, std::span<const uint8_t> bytes,
                      std::string& out) {
  Writer(types, out).value(type, bytes, 0);
}

}  // namespace clew::output::d
