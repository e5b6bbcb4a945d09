// SPDX-License-Identifier: Apache-2.0
#include "query/c_types.h"

#include <algorithm>
#include <array>

#include "query/arithmetic.h"
#include "query/number_sets.h"
#include "target/c_base_types.h"

namespace clew::query {
namespace {

// A cast needs no debug information for these.
constexpr std::array<target::CTypedef, 2> kTypedefs = {{{"bool", "_Bool"}, {"off_t", "long"}}};

std::string_view target_of(std::string_view name) {
  const auto is_it = [name](const target::CTypedef& each) { return each.name == name; };
  const auto own = std::find_if(kTypedefs.begin(), kTypedefs.end(), is_it);
  if (own != kTypedefs.end()) return own->target;
  const auto found = std::find_if(target::kCTypedefs.begin(), target::kCTypedefs.end(), is_it);
  return found == target::kCTypedefs.end() ? std::string_view() : found->target;
}

std::optional<CTypeRef> find_built_in(std::string_view name) {
  CTypeRef found;
  found.base = CTypeRef::Base::BuiltIn;
  if (name == "void") found.base = CTypeRef::Base::Void;
  if (const NumberSet* const set = find_number_set(name)) {
    found.base = CTypeRef::Base::Numbers;
    found.handle = static_cast<TypeHandle>(set - number_sets().data());
    return found;
  }
  if (name == "symbol") {
    found.base = CTypeRef::Base::Symbol;
    return found;
  }
  if (name == "double") found.built_in = kFloat64;
  if (name == "float") {
    found.built_in = kFloat64;
    found.built_in.size_bytes = 4;
  }
  if (name == "void" || name == "double" || name == "float") return found;
  const std::string_view aliased = target_of(name);
  const std::string base = aliased.empty() ? target::c_base_name(name) : std::string(aliased);
  for (const target::CInteger& candidate : target::kCIntegers) {
    if (candidate.name != base) continue;
    found.built_in = {.size_bytes = candidate.size_bytes, .is_signed = candidate.is_signed};
    found.is_character = candidate.is_character && aliased.empty();
    return found;
  }
  return std::nullopt;
}

}  // namespace

CTypeRef foreign(TypeHandle handle) {
  CTypeRef type;
  type.base = handle == 0 ? CTypeRef::Base::Void : CTypeRef::Base::Foreign;
  type.handle = handle;
  return type;
}

std::optional<CTypeRef> CTypes::find(std::string_view name, uint8_t pointers) {
  std::optional<CTypeRef> found = find_built_in(name);
  if (!found && source_ != nullptr) {
    const TypeHandle handle = source_->find_type(name);
    if (handle != 0) found = foreign(handle);
  }
  if (found) found->pointers = pointers;
  return found;
}

CTypeInfo CTypes::describe(const CTypeRef& type) {
  CTypeInfo info;
  if (type.pointers > 0) {
    info.kind = CKind::Pointer;
    info.size_bytes = 8;
    info.type = kAddress;
    info.target = type;
    --info.target.pointers;
    return info;
  }
  switch (type.base) {
    case CTypeRef::Base::None:
    case CTypeRef::Base::Void:
      break;
    case CTypeRef::Base::Foreign:
      return describe_foreign(type.handle);
    case CTypeRef::Base::Numbers:
      info.kind = CKind::Enumeration;
      info.type = numbers(type.handle);
      info.size_bytes = info.type.size_bytes;
      info.name = number_sets()[type.handle].name;
      break;
    case CTypeRef::Base::Symbol:
      info.kind = CKind::Function;
      info.name = "symbol";
      break;
    case CTypeRef::Base::BuiltIn:
      info.kind = type.built_in.kind == TypeKind::Float ? CKind::Float : CKind::Integer;
      info.size_bytes = type.built_in.size_bytes;
      info.is_character = type.is_character;
      info.type = type.built_in;
      break;
  }
  return info;
}

CTypeInfo CTypes::describe_foreign(TypeHandle handle) {
  const CType type = source_->describe(handle);
  CTypeInfo info{.kind = type.kind,
                 .size_bytes = type.size_bytes,
                 .is_character = type.is_character,
                 .type = {},
                 .target = foreign(type.target),
                 .count = type.count,
                 .name = type.name};
  const auto size_bytes = static_cast<uint8_t>(type.size_bytes);
  const bool has_register_size =
      type.size_bytes == 1 || type.size_bytes == 2 || type.size_bytes == 4 || type.size_bytes == 8;
  switch (type.kind) {
    case CKind::Boolean:
      info.kind = CKind::Integer;
      [[fallthrough]];
    case CKind::Integer:
    case CKind::Enumeration:
      if (!has_register_size) info.kind = CKind::Other;  // __int128
      info.type = {.size_bytes = size_bytes, .is_signed = type.is_signed};
      if (info.kind == CKind::Enumeration) {
        info.type.enumeration = enumeration_of(type.name, [&]() -> Enumeration {
          return {.name = type.name, .enumerators = source_->enumerators(handle)};
        });
      }
      break;
    case CKind::Float:
      if (type.size_bytes != 4 && type.size_bytes != 8) info.kind = CKind::Other;  // long double
      info.type = kFloat64;
      info.type.size_bytes = size_bytes;
      break;
    case CKind::Pointer:
      info.type = kAddress;
      break;
    case CKind::Void:
    case CKind::Record:
    case CKind::Array:
    case CKind::Function:
    case CKind::Other:
      break;
  }
  return info;
}

Type CTypes::error_number() {
  return numbers(0);
}

Type CTypes::numbers(size_t set) {
  const NumberSet& numbers = number_sets()[set];
  Type type = numbers.type;
  type.enumeration =
      enumeration_of(std::string(numbers.name), [&numbers] { return numbers.enumeration; });
  return type;
}

uint16_t CTypes::enumeration_of(const std::string& name, const std::function<Enumeration()>& make) {
  for (size_t i = 0; i < enumerations_.size(); ++i) {
    if (enumerations_[i].name == name) return static_cast<uint16_t>(i + 1);
  }
  if (enumerations_.size() == UINT16_MAX) return 0;
  enumerations_.push_back(make());
  return static_cast<uint16_t>(enumerations_.size());
}

std::vector<CMember> CTypes::members(const CTypeRef& type) {
  if (type.base != CTypeRef::Base::Foreign || type.pointers != 0) return {};
  return source_->members(type.handle);
}

}  // namespace clew::query
