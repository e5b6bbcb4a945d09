// SPDX-License-Identifier: Apache-2.0
// Calls inside expressions: subroutines, and the functions of dynamic type. An action has type
// void there, which every use refuses.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "query/d/check_alloca.h"
#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_extensions.h"
#include "query/d/check_nearest.h"
#include "query/d/check_prototypes.h"
#include "query/d/check_statement.h"
#include "query/d/check_variables.h"

namespace clew::query::d::checking {
namespace {

Compiled<void> check_subroutine(Context& context, Node& node, Subroutine subroutine) {
  TypeTable& types = context.types();
  CLEW_TRY(note_stability(context, node, stability_of(subroutine), "function " + node.name));
  for (Node& argument : node.operands)
    CLEW_TRY(check_value(context, argument));
  const Prototype prototype = parse_prototype(types, prototype_of(subroutine));
  CLEW_TRY(check_arguments(context, node, {node.name, false}, prototype, node.operands));
  node.subroutine = subroutine;
  node.type = prototype.result;
  return {};
}

std::string_view kind_of_name(const Context& context, const std::string& name) {
  const auto known = context.variables.find({VariableScope::Global, name});
  if (known == context.variables.end()) return "scalar";
  return context.script.variables[known->second].is_associative ? "associative array" : "scalar";
}

Failure unknown_function(Context& context, const Node& node) {
  const bool is_variable = context.variables.contains({VariableScope::Global, node.name}) ||
                           find_builtin(node.name) || context.inlines.contains(node.name);
  if (is_variable) {
    return error_at(node, "D_FUNC_IDKIND",
                    fmt::format("{} '{}' may not be referenced as a function",
                                kind_of_name(context, node.name), node.name));
  }
  return with_nearest(
      error_at(node, "D_FUNC_UNDEF", fmt::format("undefined function name: {}", node.name)),
      nearest_function(node.name, names_of_extensions(context)));
}

// Of Solaris alone; and those that the library defines, on a kernel that lacks what they look at.
bool is_missing(Subroutine subroutine) {
  constexpr std::array kNames = {Subroutine::DdiPathname,   Subroutine::Msgdsize,
                                 Subroutine::Msgsize,       Subroutine::MutexOwned,
                                 Subroutine::MutexOwner,    Subroutine::MutexTypeAdaptive,
                                 Subroutine::MutexTypeSpin, Subroutine::RwIswriter,
                                 Subroutine::RwReadHeld,    Subroutine::RwWriteHeld};
  return std::find(kNames.begin(), kNames.end(), subroutine) != kNames.end();
}

Compiled<void> check_without_value(Context& context, Node& call) {
  for (Node& argument : call.operands)
    CLEW_TRY(check_value(context, argument));
  call.type = context.types().void_type();
  return {};
}

}  // namespace

// What bcopy() and copyinto() write to.
Compiled<void> check_destination(const Context& context, const Node& node, Subroutine subroutine) {
  const bool is_bcopy = subroutine == Subroutine::Bcopy;
  if (!is_bcopy && subroutine != Subroutine::Copyinto) return {};
  const size_t place = is_bcopy ? 1 : 2;
  const Node* pointer = &node.operands[place];
  while (pointer->kind == NodeKind::Cast)
    pointer = &pointer->operands[0];
  const bool is_plain = pointer->kind == NodeKind::Identifier || pointer->kind == NodeKind::Integer;
  if (!is_plain || source_of(context, *pointer) != PointerSource::Other) return {};
  return error_at(node.operands[place], "D_PROTO_ARG",
                  fmt::format("{}( ) argument #{} is incompatible with prototype:\n"
                              "\tprototype: alloca pointer\n\t argument: non-alloca pointer",
                              node.name, place + 1));
}

Compiled<void> check_call(Context& context, Node& node) {
  const auto subroutine = find_subroutine(node.name);
  const auto defined = context.inlines.find(node.name);
  if (subroutine && defined != context.inlines.end()) {
    std::vector<Node> arguments = std::exchange(node.operands, {});
    return check_inline_use(context, node, defined->second, std::move(arguments));
  }
  if (subroutine && is_missing(*subroutine)) return unknown_function(context, node);
  if (subroutine) {
    CLEW_TRY(check_subroutine(context, node, *subroutine));
    CLEW_TRY(check_destination(context, node, *subroutine));
    return subroutine == Subroutine::Alloca ? check_alloca_size(context, node) : Compiled<void>();
  }
  const auto action = find_action(node.name);
  if (action && is_dynamic_function(*action)) return check_dynamic_function(context, node, *action);
  if (action || find_aggregate(node.name)) return check_without_value(context, node);
  const ExtensionFunction* const function = find_extension_function(context, node.name);
  if (function != nullptr) return check_extension_call(context, node, *function);
  return unknown_function(context, node);
}

}  // namespace clew::query::d::checking
