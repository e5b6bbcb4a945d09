// SPDX-License-Identifier: Apache-2.0
// Types as C writes them: "int (*)(int, char *)".
#include <fmt/format.h>

#include "query/d/types.h"

namespace clew::query::d {
namespace {

std::string tagged(std::string_view keyword, const Type& type) {
  if (type.name.empty()) return fmt::format("{} (anon)", keyword);
  return fmt::format("{} {}", keyword, type.name.substr(type.name.rfind('`') + 1));
}

// Of a type that is no pointer, array or function.
std::string base_name(const Type& type) {
  const TypeKind kind = type.kind;
  if (kind == TypeKind::Struct || (kind == TypeKind::Forward && type.tag == Tag::Struct))
    return tagged("struct", type);
  if (kind == TypeKind::Union || (kind == TypeKind::Forward && type.tag == Tag::Union))
    return tagged("union", type);
  if (kind == TypeKind::Enum || kind == TypeKind::Forward) return tagged("enum", type);
  return type.name.empty() ? "<none>" : type.name;
}

std::string parameter_list(const TypeTable& types, const Type& function) {
  std::string list;
  for (const TypeParameter& parameter : function.parameters)
    list += (list.empty() ? "" : ", ") + types.name_of(parameter.type);
  if (function.is_variadic) list += list.empty() ? "..." : ", ...";
  return list.empty() ? "void" : list;
}

}  // namespace

// From the outside in: what is derived from a type stands around its name.
std::string TypeTable::name_of(TypeId type) const {
  std::string inner;
  for (;;) {
    const Type& here = at(type);
    if (here.kind == TypeKind::Pointer) {
      const TypeKind target = at(here.target).kind;
      const bool binds_tighter = target == TypeKind::Array || target == TypeKind::Function;
      inner = binds_tighter ? fmt::format("(*{})", inner) : fmt::format("*{}", inner);
    } else if (here.kind == TypeKind::Array) {
      inner += here.count == 0 ? "[]" : fmt::format("[{}]", here.count);
    } else if (here.kind == TypeKind::Function) {
      inner += fmt::format("({})", parameter_list(*this, here));
    } else {
      return inner.empty() ? base_name(here) : fmt::format("{} {}", base_name(here), inner);
    }
    type = here.target;
  }
}

}  // namespace clew::query::d
