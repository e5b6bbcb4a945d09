// SPDX-License-Identifier: Apache-2.0
// The type table: base types, what types are derived from others, names that programs give.
// types_layout.cc lays records out, types_name.cc writes types as C does.
#include "query/d/types.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/assert.h"
#include "target/c_base_types.h"

namespace clew::query::d {
namespace {

struct FloatType {
  std::string_view name;
  uint32_t size_bytes;
};
constexpr std::array<FloatType, 3> kFloats = {{{"float", 4}, {"double", 8}, {"long double", 16}}};

// Typedefs that every D program has besides those of C. Those whose size depends on the kernel
// (dev_t, mode_t, …) are not among them: they come from its own types.
constexpr std::array<target::CTypedef, 31> kTypedefs = {{{"ptrdiff_t", "long"},
                                                         {"uchar_t", "unsigned char"},
                                                         {"ushort_t", "unsigned short"},
                                                         {"uint_t", "unsigned int"},
                                                         {"ulong_t", "unsigned long"},
                                                         {"longlong_t", "long long"},
                                                         {"u_longlong_t", "unsigned long long"},
                                                         {"u_char", "unsigned char"},
                                                         {"u_short", "unsigned short"},
                                                         {"u_int", "unsigned int"},
                                                         {"u_long", "unsigned long"},
                                                         {"id_t", "int"},
                                                         {"uid_t", "unsigned int"},
                                                         {"gid_t", "unsigned int"},
                                                         {"euid_t", "unsigned int"},
                                                         {"zoneid_t", "int"},
                                                         {"taskid_t", "int"},
                                                         {"projid_t", "int"},
                                                         {"poolid_t", "int"},
                                                         {"ctid_t", "int"},
                                                         {"processorid_t", "int"},
                                                         {"psetid_t", "int"},
                                                         {"chipid_t", "int"},
                                                         {"lgrp_id_t", "int"},
                                                         {"major_t", "unsigned int"},
                                                         {"minor_t", "unsigned int"},
                                                         {"offset_t", "long long"},
                                                         {"hrtime_t", "long long"},
                                                         {"pc_t", "unsigned long"},
                                                         {"index_t", "short"},
                                                         {"tid_t", "int"}}};

size_t index_of(Tag tag) {
  return static_cast<size_t>(tag);
}

}  // namespace

TypeTable::TypeTable(uint32_t string_size_bytes) {
  auto& names = tagged_[index_of(Tag::None)];
  add({});  // kNoType
  void_ = add({.kind = TypeKind::Void, .name = "void"});
  names.emplace("void", void_);
  for (const target::CInteger& base : target::kCIntegers) {
    names.emplace(base.name, add({.kind = TypeKind::Integer,
                                  .name = std::string(base.name),
                                  .size_bytes = base.size_bytes,
                                  .align_bytes = base.size_bytes,
                                  .is_signed = base.is_signed,
                                  .is_character = base.is_character}));
  }
  for (const FloatType& base : kFloats) {
    names.emplace(base.name, add({.kind = TypeKind::Float,
                                  .name = std::string(base.name),
                                  .size_bytes = base.size_bytes,
                                  .align_bytes = base.size_bytes,
                                  .is_signed = true}));
  }
  string_ = add({.kind = TypeKind::String, .name = "string", .size_bytes = string_size_bytes});
  names.emplace("string", string_);
  dynamic_ = add({.kind = TypeKind::Dynamic, .name = "<DYN>"});
  const auto define = [this](const target::CTypedef& each) {
    CLEW_ASSERT(define_typedef(std::string(each.name), find_base(each.target)).has_value());
  };
  std::for_each(target::kCTypedefs.begin(), target::kCTypedefs.end(), define);
  std::for_each(kTypedefs.begin(), kTypedefs.end(), define);
  CLEW_ASSERT(define_typedef("caddr_t", pointer_to(find_base("char"))).has_value());
}

// --- questions -----------------------------------------------------------------------------------

TypeId TypeTable::strip(TypeId type) const {
  while (at(type).kind == TypeKind::Typedef)
    type = at(type).target;
  return type;
}

uint32_t TypeTable::size_of(TypeId type) const {
  return stripped(type).size_bytes;
}

bool TypeTable::is_integer(TypeId type) const {
  const TypeKind kind = stripped(type).kind;
  return kind == TypeKind::Integer || kind == TypeKind::Enum;
}

bool TypeTable::is_signed(TypeId type) const {
  return stripped(type).is_signed;
}

bool TypeTable::is_pointer(TypeId type) const {
  const TypeKind kind = stripped(type).kind;
  return kind == TypeKind::Pointer || kind == TypeKind::Array;
}

bool TypeTable::is_string(TypeId type) const {
  return stripped(type).kind == TypeKind::String;
}

bool TypeTable::is_string_like(TypeId type) const {
  return is_string(type) || (is_pointer(type) && stripped(stripped(type).target).is_character);
}

bool TypeTable::is_record(TypeId type) const {
  const TypeKind kind = stripped(type).kind;
  return kind == TypeKind::Struct || kind == TypeKind::Union;
}

TypeId TypeTable::integer(uint32_t size_bytes, bool is_signed) const {
  switch (size_bytes) {
    case 1:
      return find_base(is_signed ? "char" : "unsigned char");
    case 2:
      return find_base(is_signed ? "short" : "unsigned short");
    case 4:
      return find_base(is_signed ? "int" : "unsigned int");
    default:
      return find_base(is_signed ? "long" : "unsigned long");
  }
}

TypeId TypeTable::find_base(std::string_view name) const {
  return find_here(Tag::None, name);
}

// --- derived types -------------------------------------------------------------------------------

TypeId TypeTable::add(Type type) {
  types_.push_back(std::move(type));
  return static_cast<TypeId>(types_.size() - 1);
}

TypeId TypeTable::intern(std::string key, Type type) {
  const auto hit = structural_.find(key);
  if (hit != structural_.end()) return hit->second;
  const TypeId made = add(std::move(type));
  structural_.emplace(std::move(key), made);
  return made;
}

TypeId TypeTable::pointer_to(TypeId target) {
  return intern(fmt::format("*{}", target),
                {.kind = TypeKind::Pointer, .size_bytes = 8, .align_bytes = 8, .target = target});
}

TypeId TypeTable::array_of(TypeId element, uint32_t count) {
  const Type& of = stripped(element);
  const uint64_t size_bytes = uint64_t{of.size_bytes} * count;
  CLEW_ASSERT(size_bytes <= kTypeBytesMax);
  return intern(fmt::format("[{}]{}", count, element),
                {.kind = TypeKind::Array,
                 .size_bytes = static_cast<uint32_t>(size_bytes),
                 .align_bytes = of.align_bytes,
                 .target = element,
                 .count = count});
}

// Names of parameters are no part of the type: the first one's stay.
TypeId TypeTable::function(TypeId result, std::vector<TypeParameter> parameters, bool is_variadic) {
  std::string key = fmt::format("({}){}", is_variadic ? "..." : "", result);
  for (const TypeParameter& parameter : parameters)
    key += fmt::format(",{}", parameter.type);
  return intern(std::move(key), {.kind = TypeKind::Function,
                                 .target = result,
                                 .is_variadic = is_variadic,
                                 .parameters = std::move(parameters)});
}

TypeId TypeTable::userland_of(TypeId type) {
  if (at(type).is_userland) return type;
  Type copy = at(type);
  copy.is_userland = true;
  if (copy.kind == TypeKind::Typedef) copy.target = userland_of(copy.target);
  return intern(fmt::format("u{}", type), std::move(copy));
}

// --- names ---------------------------------------------------------------------------------------

Expected<TypeId> TypeTable::define_typedef(std::string name, TypeId target) {
  auto& names = tagged_[index_of(Tag::None)];
  const auto hit = names.find(name);
  if (hit != names.end()) {
    if (strip(hit->second) == strip(target)) return hit->second;
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{} is {} already", name, name_of(strip(hit->second))));
  }
  const TypeId made = add_typedef(name, target);
  names.emplace(std::move(name), made);
  return made;
}

TypeId TypeTable::add_typedef(std::string name, TypeId target) {
  const Type& of = stripped(target);
  return add({.kind = TypeKind::Typedef,
              .name = std::move(name),
              .size_bytes = of.size_bytes,
              .align_bytes = of.align_bytes,
              .is_signed = of.is_signed,
              .is_character = of.is_character,
              .target = target,
              .is_userland = at(target).is_userland});
}

TypeId TypeTable::declare(Tag tag, std::string name) {
  CLEW_ASSERT(tag != Tag::None);
  if (name.empty()) return add({.kind = TypeKind::Forward, .tag = tag});
  const auto hit = tagged_[index_of(tag)].find(name);
  return hit == tagged_[index_of(tag)].end() ? redeclare(tag, std::move(name)) : hit->second;
}

TypeId TypeTable::redeclare(Tag tag, std::string name) {
  const TypeId made = add({.kind = TypeKind::Forward,
                           .tag = tag,
                           .name = name,
                           .is_userland = name.find('`') != std::string::npos});
  tagged_[index_of(tag)].insert_or_assign(std::move(name), made);
  return made;
}

Expected<void> TypeTable::define_enum(TypeId enumeration, std::vector<TypeEnumerator> enumerators) {
  Type& type = types_[enumeration];
  CLEW_ASSERT(type.kind == TypeKind::Forward && type.tag == Tag::Enum);
  for (const TypeEnumerator& each : enumerators) {
    const auto [place, is_new] =
        enumerators_.try_emplace(each.name, std::pair(enumeration, each.value));
    if (!is_new && place->second.second != each.value) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("{} is {} already", each.name, place->second.second));
    }
  }
  type.kind = TypeKind::Enum;
  type.size_bytes = 4;
  type.align_bytes = 4;
  type.is_signed = true;
  type.enumerators = std::move(enumerators);
  return {};
}

TypeId TypeTable::find_here(Tag tag, std::string_view name) const {
  const auto& names = tagged_[index_of(tag)];
  const auto hit = names.find(name);
  return hit == names.end() ? kNoType : hit->second;
}

TypeId TypeTable::find(std::string_view module, Tag tag, std::string_view name) {
  if (module == "C" || module == "D") return find_here(tag, name);
  auto& names = tagged_[index_of(tag)];
  const TypeId known = module.empty() ? find_here(tag, name) : kNoType;
  if (provider_ == nullptr) return known;
  if (known != kNoType && at(known).kind != TypeKind::Forward) return known;
  const TypeId found = provider_->find(*this, module, tag, name);
  if (found == kNoType) return known;
  if (module.empty()) names.insert_or_assign(std::string(name), found);
  return found;
}

TypeId TypeTable::complete(TypeId type) {
  const Type& forward = stripped(type);
  if (forward.kind != TypeKind::Forward || forward.name.empty()) return type;
  const size_t quote = forward.name.rfind('`');
  const TypeId found =
      quote == std::string::npos
          ? find("", forward.tag, forward.name)
          : strip(find(forward.name.substr(0, quote), forward.tag, forward.name.substr(quote + 1)));
  return found == kNoType || at(found).kind == TypeKind::Forward ? type : found;
}

std::optional<TypeEnumerator> TypeTable::find_enumerator(std::string_view name, TypeId& type) {
  const auto hit = enumerators_.find(name);
  if (hit != enumerators_.end()) {
    type = hit->second.first;
    return TypeEnumerator{hit->first, hit->second.second};
  }
  type = integer(4, true);
  return provider_ == nullptr ? std::nullopt : provider_->find_enumerator(*this, name);
}

}  // namespace clew::query::d
