// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/script_types.h"

namespace clew::engine {

using query::d::kNoType;
using query::d::TypeId;

namespace {

// No module of the kernel has such a name.
bool is_of_program(std::string_view module) {
  return module.find_first_of("`.") != std::string_view::npos;
}

}  // namespace

TypeId ScriptTypes::find(query::d::TypeTable& table, std::string_view module, query::d::Tag tag,
                         std::string_view name) {
  const TypeId known = is_of_program(module) ? kNoType : kernel_.find(table, module, tag, name);
  return known != kNoType ? known : user_.find(table, module, tag, name);
}

std::optional<query::d::TypeEnumerator> ScriptTypes::find_enumerator(query::d::TypeTable& table,
                                                                     std::string_view name) {
  const auto known = kernel_.find_enumerator(table, name);
  return known ? known : user_.find_enumerator(name);
}

}  // namespace clew::engine
