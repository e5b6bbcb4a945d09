// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_nearest.h"

#include "base/nearest.h"

namespace clew::query::d::checking {
namespace {

// Of an enumeration whose values begin with None.
template <typename Kind>
void add_names(Kind last, std::vector<std::string_view>& names) {
  for (uint32_t i = 1; i <= static_cast<uint32_t>(last); ++i)
    names.push_back(name_of(static_cast<Kind>(i)));
}

void add_members(const TypeTable& types, TypeId record, std::vector<std::string_view>& names) {
  for (const TypeMember& member : types.stripped(record).members) {
    if (!member.name.empty()) {
      names.push_back(member.name);
    } else if (types.is_record(member.type)) {
      add_members(types, member.type, names);
    }
  }
}

}  // namespace

std::string nearest_variable(const Context& context, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [key, index] : context.variables) {
    if (key.first == VariableScope::Global) names.push_back(key.second);
  }
  for (const auto& [inline_name, definition] : context.inlines)
    names.push_back(inline_name);
  add_names(Builtin::Walltimestamp, names);
  return nearest_name(name, names);
}

std::string nearest_function(std::string_view name, std::span<const std::string> others) {
  std::vector<std::string_view> names(others.begin(), others.end());
  add_names(Subroutine::Toupper, names);
  add_names(Action::Usym, names);
  add_names(AggregateFunction::Llquantize, names);
  return nearest_name(name, names);
}

std::string nearest_member(const TypeTable& types, TypeId record, std::string_view name) {
  std::vector<std::string_view> names;
  add_members(types, record, names);
  return nearest_name(name, names);
}

}  // namespace clew::query::d::checking
