// SPDX-License-Identifier: Apache-2.0
// The one table of what every event exports: the checker, `clew list --fields` and the language's
// reference read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "query/query.h"

namespace clew::query {

struct FieldInfo {
  std::string_view name;  // As queries write it; arguments are written with a number behind.
  Field field;
  Type type;
  std::string_view where;  // For people: "every source", "return", …
  uint32_t kinds;          // Bit n: sources of SourceKind n have it.
  std::string_view doc;
};

std::span<const FieldInfo> fields();
// By its name or another one that it has, not counting case; null when there is none.
const FieldInfo* find_field(std::string_view name);
// Names that papers have for what is called otherwise here.
struct FieldAlias {
  std::string_view name;
  Field field;
};
std::span<const FieldAlias> field_aliases();
const FieldInfo& info(Field field);
// "arg3", "entry.arg3", "xmm0", "entry.xmm0": of Argument and EntryArgument.
std::string argument_name(Field field, uint16_t index);
bool has_field(SourceKind kind, Field field);
// "entry", "return", … as providers are called.
std::string_view name_of(SourceKind kind);
// "int32", "string", … as the reference calls a type.
std::string_view name_of(const Type& type);

// Other names that events export, for lists.
struct FieldForm {
  std::string_view name;
  std::string_view type;
  std::string_view sources;
  std::string_view meaning;
};
std::span<const FieldForm> field_forms();

}  // namespace clew::query
