// SPDX-License-Identifier: Apache-2.0
#include "query/c_types.h"

#include <array>

#include "query/arithmetic.h"
#include "query/error_numbers.h"

namespace clew::query {
namespace {

struct BuiltIn {
  std::string_view name;
  uint8_t size_bytes;
  bool is_signed;
  bool is_character = false;
};

// The x86-64 psABI's sizes (3.1.2); char is signed there.
constexpr std::array<BuiltIn, 36> kBuiltIns = {{{"char", 1, true, true},
                                                {"signed char", 1, true, true},
                                                {"unsigned char", 1, false, true},
                                                {"bool", 1, false},
                                                {"_Bool", 1, false},
                                                {"short", 2, true},
                                                {"short int", 2, true},
                                                {"unsigned short", 2, false},
                                                {"unsigned short int", 2, false},
                                                {"int", 4, true},
                                                {"signed", 4, true},
                                                {"signed int", 4, true},
                                                {"unsigned", 4, false},
                                                {"unsigned int", 4, false},
                                                {"long", 8, true},
                                                {"long int", 8, true},
                                                {"long long", 8, true},
                                                {"long long int", 8, true},
                                                {"unsigned long", 8, false},
                                                {"unsigned long int", 8, false},
                                                {"unsigned long long", 8, false},
                                                {"unsigned long long int", 8, false},
                                                {"int8_t", 1, true},
                                                {"int16_t", 2, true},
                                                {"int32_t", 4, true},
                                                {"int64_t", 8, true},
                                                {"uint8_t", 1, false},
                                                {"uint16_t", 2, false},
                                                {"uint32_t", 4, false},
                                                {"uint64_t", 8, false},
                                                {"size_t", 8, false},
                                                {"ssize_t", 8, true},
                                                {"intptr_t", 8, true},
                                                {"uintptr_t", 8, false},
                                                {"off_t", 8, true},
                                                {"pid_t", 4, true}}};

std::optional<CTypeRef> find_built_in(std::string_view name) {
  CTypeRef found;
  found.base = CTypeRef::Base::BuiltIn;
  if (name == "void") found.base = CTypeRef::Base::Void;
  if (name == "errno") {
    found.base = CTypeRef::Base::ErrorNumber;
    return found;
  }
  if (name == "double") found.built_in = kFloat64;
  if (name == "float") {
    found.built_in = kFloat64;
    found.built_in.size_bytes = 4;
  }
  if (name == "void" || name == "double" || name == "float") return found;
  for (const BuiltIn& candidate : kBuiltIns) {
    if (candidate.name != name) continue;
    found.built_in = {.size_bytes = candidate.size_bytes, .is_signed = candidate.is_signed};
    found.is_character = candidate.is_character;
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
    case CTypeRef::Base::ErrorNumber:
      info.kind = CKind::Enumeration;
      info.type = error_number();
      info.size_bytes = info.type.size_bytes;
      info.name = "errno";
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
        info.type.enumeration =
            enumeration_of(type.name, [&] { return source_->enumerators(handle); });
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
  return {.size_bytes = 4, .enumeration = enumeration_of("errno", error_numbers)};
}

uint16_t CTypes::enumeration_of(const std::string& name,
                                const std::function<std::vector<Enumerator>()>& make) {
  for (size_t i = 0; i < enumerations_.size(); ++i) {
    if (enumerations_[i].name == name) return static_cast<uint16_t>(i + 1);
  }
  if (enumerations_.size() == UINT16_MAX) return 0;
  enumerations_.push_back({.name = name, .enumerators = make()});
  return static_cast<uint16_t>(enumerations_.size());
}

std::vector<CMember> CTypes::members(const CTypeRef& type) {
  if (type.base != CTypeRef::Base::Foreign || type.pointers != 0) return {};
  return source_->members(type.handle);
}

}  // namespace clew::query
