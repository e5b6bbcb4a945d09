// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_extensions.h"

#include <algorithm>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_prototypes.h"

namespace clew::query::d::checking {
namespace {

std::string type_text(const query::Type& type) {
  if (type.unit == Unit::Address) return "void *";
  return fmt::format("{}int{}_t", type.is_signed ? "" : "u", 8 * type.size_bytes);
}

Prototype prototype_of(TypeTable& types, const ExtensionFunction& function) {
  std::string parameters;
  for (const query::Type& parameter : function.parameters)
    parameters += (parameters.empty() ? "" : ", ") + type_text(parameter);
  return parse_prototype(types, fmt::format("{}({})", type_text(function.result), parameters));
}

// By its place in Script::extension_functions.
uint32_t index_of(Script& script, const ExtensionFunction& function) {
  auto& known = script.extension_functions;
  const auto found = std::find(known.begin(), known.end(), function.name);
  const auto index = static_cast<uint32_t>(found - known.begin());
  if (found == known.end()) known.push_back(function.name);
  return index;
}

}  // namespace

const ExtensionFunction* find_extension_function(Context& context, std::string_view name) {
  ExtensionSource* const source = context.options.extensions;
  return source == nullptr ? nullptr : source->find(name);
}

std::vector<std::string> names_of_extensions(const Context& context) {
  ExtensionSource* const source = context.options.extensions;
  return source == nullptr ? std::vector<std::string>() : source->names();
}

Compiled<void> check_extension_call(Context& context, Node& node,
                                    const ExtensionFunction& function) {
  if (!function.refusal.empty()) {
    return error_at(node, "D_EXT_FUNC",
                    fmt::format("{}( ) cannot be called: {}", node.name, function.refusal));
  }
  TypeTable& types = context.types();
  for (size_t i = 0; i < node.operands.size(); ++i) {
    Node& argument = node.operands[i];
    CLEW_TRY(check_value(context, argument));
    const bool is_address =
        i < function.parameters.size() && function.parameters[i].unit == Unit::Address;
    if (is_address && argument.type != kNoType && types.is_integer(argument.type))
      convert(types, argument, types.pointer_to(types.void_type()));
  }
  const Prototype prototype = prototype_of(types, function);
  CLEW_TRY(check_arguments(context, node, {node.name, false}, prototype, node.operands));
  node.is_extension = true;
  node.index = index_of(context.script, function);
  node.type = prototype.result;
  return {};
}

}  // namespace clew::query::d::checking
