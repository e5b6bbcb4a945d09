// SPDX-License-Identifier: Apache-2.0
// @a[keys] = function(arguments), and the actions on a whole aggregation.
#include <span>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_nearest.h"
#include "query/d/check_prototypes.h"
#include "query/d/check_quantize.h"
#include "query/d/check_statement.h"
#include "query/d/check_variables.h"
#include "query/d/print.h"

namespace clew::query::d::checking {
namespace {

Compiled<AggregateFunction> function_of(const Node& assign) {
  const Node& target = assign.operands[0];
  const Node& call = assign.operands[1];
  if (call.kind == NodeKind::Call && !assign.is_compound) {
    if (const auto kind = find_aggregate(call.name)) return *kind;
    if (!find_subroutine(call.name) && !find_action(call.name)) {
      return with_nearest(error_at(call, "D_FUNC_UNDEF", "undefined function name: " + call.name),
                          nearest_function(call.name));
    }
  }
  return error_at(
      assign, "D_AGG_FUNC",
      fmt::format("@{} must be assigned the result of an aggregating function", target.name));
}

Compiled<void> check_operands(Context& context, Node& call) {
  for (Node& operand : call.operands)
    CLEW_TRY(check_value(context, operand));
  return {};
}

// The arguments that the aggregation stores: the value and its weight.
Compiled<void> check_scalars(Context& context, Node& call) {
  TypeTable& types = context.types();
  for (size_t i = 0; i < call.operands.size(); ++i) {
    Node& operand = call.operands[i];
    const bool is_plain = operand.kind != NodeKind::Aggregation && is_scalar(types, operand.type);
    if (!is_plain && i > 0) {
      const size_t number = call.name == "quantize" ? 2 : call.name == "lquantize" ? 5 : 6;
      return error_at(operand, "D_PROTO_ARG",
                      fmt::format("{}( ) increment value (argument #{}) must be of scalar type",
                                  call.name, number));
    }
    if (!is_plain) {
      return error_at(operand, "D_AGG_SCALAR",
                      fmt::format("{}( ) argument #1 must be of scalar type", call.name));
    }
    convert(types, operand, types.integer(8, true));
  }
  return {};
}

Aggregation::Key key_action(const Node& key) {
  if (key.kind != NodeKind::Call) return {};
  const auto action = find_action(key.name);
  if (!action || !is_dynamic_function(*action)) return {};
  const bool is_stack =
      *action == Action::Stack || *action == Action::Ustack || *action == Action::Jstack;
  return {*action, is_stack ? static_cast<uint32_t>(key.operands[0].integer) : 0};
}

uint32_t add_aggregation(Context& context, const Node& target) {
  const auto index = static_cast<uint32_t>(context.script.aggregations.size());
  Aggregation aggregation;
  aggregation.name = target.name;
  context.script.aggregations.push_back(std::move(aggregation));
  context.aggregations[target.name] = index;
  context.aggregation_lines.push_back(target.line);
  return index;
}

std::span<Node> keys_of_aggregation(Node& target) {
  return target.operands;
}

Compiled<void> check_known_keys(Context& context, Node& target, const Aggregation& known) {
  Prototype prototype;
  for (const TypeId key : known.keys) {
    prototype.parameters.push_back({context.types().name_of(key), key});
  }
  prototype.required = static_cast<uint32_t>(known.keys.size());
  CLEW_TRY(check_arguments(context, target, {"@" + target.name, true}, prototype,
                           keys_of_aggregation(target)));
  for (size_t i = 0; i < known.keys.size(); ++i) {
    const Action action = key_action(target.operands[i]).action;
    const Action wanted = known.key_actions[i].action;
    if (action == wanted) continue;
    return error_at(target.operands[i], "D_PROTO_ARG",
                    fmt::format("@{}[ ] key #{} is incompatible with prototype:\n\tprototype: {}( "
                                ")\n\t argument: {}( )",
                                target.name, i + 1, name_of(wanted), name_of(action)));
  }
  return {};
}

Compiled<void> check_redefinition(const Context& context, const Node& assign,
                                  AggregateFunction kind, uint32_t index) {
  const Aggregation& known = context.script.aggregations[index];
  if (known.function == kind) return {};
  return error_at(assign, "D_AGG_REDEF",
                  fmt::format("aggregation redefined: @{0}\n\t current: @{0} = {1}( )\n"
                              "\tprevious: @{0} = {2}( ) : line {3}",
                              known.name, name_of(kind), name_of(known.function),
                              context.aggregation_lines[index]));
}

Compiled<uint32_t> check_first_use(Context& context, Node& assign, AggregateFunction kind) {
  Node& target = assign.operands[0];
  std::vector<TypeId> keys =
      CLEW_TRY(key_types(context, keys_of_aggregation(target), "aggregation"));
  std::vector<int64_t> parameters =
      CLEW_TRY(take_parameters(context.types(), assign.operands[1], kind, nullptr));
  const uint32_t index = add_aggregation(context, target);
  Aggregation& made = context.script.aggregations[index];
  made.function = kind;
  made.is_used = true;
  made.keys = std::move(keys);
  made.parameters = std::move(parameters);
  for (const Node& key : target.operands)
    made.key_actions.push_back(key_action(key));
  return index;
}

Compiled<void> check_later_use(Context& context, Node& assign, AggregateFunction kind,
                               uint32_t index) {
  Node& target = assign.operands[0];
  CLEW_TRY(check_redefinition(context, assign, kind, index));
  (void)CLEW_TRY(key_types(context, keys_of_aggregation(target), "aggregation"));
  const Aggregation& known = context.script.aggregations[index];
  CLEW_TRY(check_known_keys(context, target, known));
  (void)CLEW_TRY(take_parameters(context.types(), assign.operands[1], kind, &known.parameters));
  return {};
}

// --- actions -------------------------------------------------------------------------------------

// What the tags begin with that are about the aggregation; others are of any function.
std::string_view tag_of(Action action) {
  if (action == Action::Clear) return "D_CLEAR_";
  return action == Action::Trunc ? "D_TRUNC_" : "D_NORMALIZE_";
}

}  // namespace

Compiled<void> check_aggregate(Context& context, Statement& statement) {
  Node& assign = statement.expression;
  statement.kind = StatementKind::Aggregate;
  const AggregateFunction kind = CLEW_TRY(function_of(assign));
  Node& target = assign.operands[0];
  Node& call = assign.operands[1];
  CLEW_TRY(check_operands(context, target));
  CLEW_TRY(check_operands(context, call));
  const Prototype prototype = parse_prototype(context.types(), prototype_of(kind));
  CLEW_TRY(check_arguments(context, call, {call.name, false}, prototype, call.operands));
  const auto known = context.aggregations.find(target.name);
  if (known == context.aggregations.end()) {
    statement.aggregation = CLEW_TRY(check_first_use(context, assign, kind));
  } else {
    statement.aggregation = known->second;
    CLEW_TRY(check_later_use(context, assign, kind, known->second));
  }
  CLEW_TRY(check_scalars(context, call));
  target.index = statement.aggregation;
  target.type = call.type = assign.type = context.types().void_type();
  return note_aggregate(context, statement);
}

Compiled<uint32_t> named_aggregation(Context& context, const Node& call, size_t number,
                                     std::string_view tag) {
  const Node& argument = call.operands[number];
  if (argument.kind != NodeKind::Aggregation) {
    return error_at(argument, std::string(tag) + "AGGARG",
                    fmt::format("{}( ) argument #{} is incompatible with prototype:\n\tprototype: "
                                "aggregation\n\t argument: {}",
                                call.name, number + 1, shown_type(context.types(), argument)));
  }
  const auto known = context.aggregations.find(argument.name);
  if (known != context.aggregations.end()) return known->second;
  return error_at(argument, std::string(tag) + "AGGBAD",
                  "undefined aggregation: @" + argument.name);
}

Compiled<void> check_aggregation_action(Context& context, Statement& statement) {
  TypeTable& types = context.types();
  Node& call = statement.expression;
  CLEW_TRY(check_operands(context, call));
  const Prototype prototype = parse_prototype(types, prototype_of(statement.action));
  CLEW_TRY(check_arguments(context, call, {call.name, false}, prototype, call.operands));
  statement.aggregation = CLEW_TRY(named_aggregation(context, call, 0, tag_of(statement.action)));
  statement.aggregations = {statement.aggregation};
  call.operands.erase(call.operands.begin());
  if (call.operands.empty()) return {};
  convert(types, call.operands[0], types.integer(8, true));
  return {};
}

}  // namespace clew::query::d::checking
