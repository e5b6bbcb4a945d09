// SPDX-License-Identifier: Apache-2.0
#include "target/btf_types.h"

#include <algorithm>
#include <array>
#include <utility>

#include "target/c_base_types.h"

namespace clew::target {

namespace {

constexpr uint64_t kBtfPointerBytes = 8;
constexpr uint32_t kDimensionsMax = 64;
constexpr BtfId kBaseTypesEnd = 100;  // They come first.

BtfId number_of(TypeId type) {
  return static_cast<BtfId>(type);
}

TypeKind kind_of(const BtfType& type) {
  switch (type.kind) {
    case BtfKind::Void:
      return TypeKind::Void;
    case BtfKind::Integer:
      return type.is_boolean ? TypeKind::Boolean : TypeKind::Integer;
    case BtfKind::Float:
      return TypeKind::Float;
    case BtfKind::Pointer:
      return TypeKind::Pointer;
    case BtfKind::Array:
      return TypeKind::Array;
    case BtfKind::Struct:
    case BtfKind::Union:
    case BtfKind::Forward:
      return TypeKind::Record;
    case BtfKind::Enum:
      return TypeKind::Enumeration;
    case BtfKind::Prototype:
      return TypeKind::Function;
    case BtfKind::Typedef:
    case BtfKind::Qualifier:
    case BtfKind::Function:
    case BtfKind::Variable:
    case BtfKind::Other:
      return TypeKind::Other;
  }
  return TypeKind::Other;
}

bool is_base(BtfKind kind) {
  return kind == BtfKind::Integer || kind == BtfKind::Float;
}

}  // namespace

uint64_t BtfTypes::size_of(BtfId type) const {
  uint64_t count = 1;
  for (uint32_t depth = 0; depth < kDimensionsMax; ++depth) {
    const BtfType known = btf_.at(btf_.strip(type));
    if (known.kind == BtfKind::Pointer) return count * kBtfPointerBytes;
    if (known.kind != BtfKind::Array) return count * known.size_bytes;
    count *= known.count;
    type = known.target;
  }
  return 0;
}

TypeId BtfTypes::find_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, BtfKind>, 3> kTags = {
      {{"struct ", BtfKind::Struct}, {"union ", BtfKind::Union}, {"enum ", BtfKind::Enum}}};
  for (const auto& [word, kind] : kTags) {
    if (name.starts_with(word)) return btf_.find(kind, name.substr(word.size()));
  }
  const BtfId named = btf_.find(BtfKind::Typedef, name);
  if (named != kBtfVoid) return named;
  const std::string base = c_base_name(name);
  for (BtfId id = 1; id < std::min(btf_.end_id(), kBaseTypesEnd); ++id) {
    const BtfType type = btf_.at(id);
    if (is_base(type.kind) && c_base_name(type.name) == base) return id;
  }
  const BtfId integer = btf_.find(BtfKind::Integer, name);
  return integer != kBtfVoid ? integer : btf_.find(BtfKind::Float, name);
}

TypeDescription BtfTypes::describe(TypeId type) {
  const BtfId id = number_of(type);
  const BtfType named = btf_.at(btf_.skip_qualifiers(id));
  const BtfId stripped = btf_.strip(id);
  const BtfType known = btf_.at(stripped);
  TypeDescription result{.kind = kind_of(known),
                         .size_bytes = size_of(stripped),
                         .is_signed = known.is_signed,
                         .is_union = known.is_union || known.kind == BtfKind::Union,
                         .is_declared = known.kind == BtfKind::Forward,
                         .is_variadic = known.is_variadic,
                         .target = known.target,
                         .count = known.count,
                         .name = c_type_text(btf_, id)};
  const bool is_byte = known.kind == BtfKind::Integer && known.size_bytes == 1;
  result.is_character = is_byte && known.name.ends_with("char");
  if (named.kind == BtfKind::Typedef || is_base(named.kind)) result.alias = named.name;
  const bool is_tagged = result.kind == TypeKind::Record || result.kind == TypeKind::Enumeration;
  if (is_tagged) result.tag = known.name;
  for (const BtfParameter& each : btf_.parameters(stripped))
    result.parameters.push_back({std::string(each.name), each.type});
  return result;
}

std::vector<TypeMember> BtfTypes::members(TypeId record) {
  std::vector<TypeMember> result;
  for (const BtfMember& each : btf_.members(btf_.strip(number_of(record)))) {
    result.push_back({.name = std::string(each.name),
                      .type = each.type,
                      .offset_bytes = each.offset_bits / 8,
                      .bit_offset = static_cast<uint8_t>(each.offset_bits % 8),
                      .bit_size = each.bit_size});
  }
  return result;
}

std::vector<TypeEnumerator> BtfTypes::enumerators(TypeId enumeration) {
  std::vector<TypeEnumerator> result;
  for (const BtfEnumerator& each : btf_.enumerators(btf_.strip(number_of(enumeration))))
    result.push_back({std::string(each.name), each.value});
  return result;
}

}  // namespace clew::target
