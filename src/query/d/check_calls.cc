// SPDX-License-Identifier: Apache-2.0
// Calls inside expressions: subroutines, and the functions of dynamic type. An action has type
// void there, which every use refuses.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

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

Compiled<void> check_negative_size(const Node& node, Subroutine subroutine) {
  if (subroutine != Subroutine::Alloca || node.operands.size() != 1) return {};
  const Node& size = node.operands[0];
  if (size.kind != NodeKind::Integer || static_cast<int64_t>(size.integer) >= 0) return {};
  return error_at(size, "D_ALLOCA_SIZE", "alloca( ) argument #1 must not be negative");
}

Failure unknown_function(Context& context, const Node& node) {
  const bool is_variable = context.variables.contains({VariableScope::Global, node.name}) ||
                           find_builtin(node.name) || context.inlines.contains(node.name);
  if (is_variable) {
    return error_at(node, "D_FUNC_IDENT",
                    fmt::format("variable '{}' may not be called as a function", node.name));
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

}  // namespace

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
    return check_negative_size(node, *subroutine);
  }
  const auto action = find_action(node.name);
  if (action && is_dynamic_function(*action)) return check_dynamic_function(context, node, *action);
  if (action) {
    for (Node& argument : node.operands)
      CLEW_TRY(check_value(context, argument));
    node.type = context.types().void_type();
    return {};
  }
  if (find_aggregate(node.name)) {
    return error_at(node, "D_AGG_NULL",
                    fmt::format("{}( ) has no effect without an aggregation", node.name));
  }
  const ExtensionFunction* const function = find_extension_function(context, node.name);
  if (function != nullptr) return check_extension_call(context, node, *function);
  return unknown_function(context, node);
}

}  // namespace clew::query::d::checking
