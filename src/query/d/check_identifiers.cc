// SPDX-License-Identifier: Apache-2.0
// Names in expressions. The order: parameters of the inline or translator at hand, variables,
// inlines, built-in variables, enumerators; kernel symbols only with a backquote.
#include <span>

#include <fmt/format.h>

#include "query/d/check_builtins.h"
#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_nearest.h"
#include "query/d/check_prototypes.h"
#include "query/d/check_variables.h"
#include "query/d/print.h"

namespace clew::query::d::checking {
namespace {

// R_TRAPNO and its like are the last that have a name.
constexpr uint64_t kRegistersMax = 64;

Failure bad_reference(const Node& node, std::string_view kind, std::string_view as) {
  return error_at(node, "D_IDENT_BADREF",
                  fmt::format("{} '{}' may not be referenced as {}", kind, node.name, as));
}

Failure unknown_name(const Context& context, const Node& node) {
  return with_nearest(
      error_at(node, "D_IDENT_UNDEF",
               fmt::format("failed to resolve {}: Unknown variable name", node.name)),
      nearest_variable(context, node.name));
}

std::optional<uint32_t> parameter_index(const Context& context, std::string_view name) {
  for (size_t i = 0; i < context.parameters.size(); ++i) {
    if (context.parameters[i].name == name) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

Compiled<void> check_symbol(Context& context, Node& node) {
  TypeTable& types = context.types();
  TypeProvider* provider = types.provider();
  const std::string module = node.module == " " ? "" : node.module;
  const std::string shown = module + "`" + node.name;
  if (provider == nullptr) {
    return error_at(node, "D_IDENT_UNDEF",
                    fmt::format("failed to resolve {}: No such symbol", shown));
  }
  auto symbol = provider->find_symbol(types, module, node.name);
  if (!symbol) {
    return error_at(node, "D_IDENT_UNDEF",
                    fmt::format("failed to resolve {}: {}", shown, symbol.error().message));
  }
  CLEW_TRY(note_stability(context, node, kStabilityOfSymbols, "external symbol " + shown));
  node.storage = Storage::Memory;
  node.integer = symbol->address;
  node.type = symbol->type == kNoType ? types.void_type() : symbol->type;
  return {};
}

Compiled<void> check_builtin(Context& context, Node& node, Builtin builtin) {
  if (is_array(builtin)) return bad_reference(node, "associative array", "scalar");
  node.type = type_of(context.types(), builtin);
  if (is_void(context.types(), node.type)) return unknown_name(context, node);
  CLEW_TRY(note_stability(context, node, stability_of(builtin), "scalar " + node.name));
  node.storage = Storage::Builtin;
  node.builtin = builtin;
  if (context.clause != nullptr && builtin >= Builtin::Arg0 && builtin <= Builtin::Arg9) {
    node.is_userland = !context.arguments.empty() && context.arguments[0].is_userland;
  }
  return {};
}

Compiled<void> check_scoped_variable(Context& context, Node& node) {
  const VariableKey key = *variable_key(node);
  auto known = context.variables.find(key);
  if (known == context.variables.end()) {
    known = load_unknown(context, key);
    context.first_loads[known->second] = {node.line, node.span};
  }
  if (context.script.variables[known->second].is_associative) {
    return bad_reference(node, "associative array", "scalar");
  }
  become_variable(context, node, known->second);
  return {};
}

Compiled<void> check_other_name(Context& context, Node& node) {
  if (const auto known = context.inlines.find(node.name); known != context.inlines.end()) {
    if (!known->second.parameters.empty()) return bad_reference(node, "inline", "scalar");
    return check_inline_use(context, node, known->second, {});
  }
  if (const auto builtin = find_builtin(node.name); builtin && *builtin != Builtin::None) {
    return check_builtin(context, node, *builtin);
  }
  TypeId type = kNoType;
  if (const auto enumerator = context.types().find_enumerator(node.name, type)) {
    if (type == kNoType) type = context.types().integer(4, true);
    node = integer_node(node, static_cast<uint64_t>(enumerator->value), type);
    return {};
  }
  if (find_subroutine(node.name)) return bad_reference(node, "function", "scalar");
  if (find_action(node.name)) return bad_reference(node, "tracing function", "scalar");
  if (find_aggregate(node.name)) return bad_reference(node, "aggregating function", "scalar");
  return unknown_name(context, node);
}

// The tree's one place that may read probe arguments; all descriptions of the clause must agree.
// With -Z there may be none of its probes: nobody knows what they will have.
Compiled<const ProbeArguments*> arguments_of_clause(Context& context, const Node& node) {
  if (context.clause == nullptr || context.arguments.empty()) {
    return error_at(node, "D_ARGS_NONE", "args[ ] may not be referenced outside of a probe clause");
  }
  const ProbeArguments* first = nullptr;
  bool agree = true;
  for (const ProbeArguments& each : context.arguments) {
    if (each.matched == 0) continue;
    if (first == nullptr) first = &each;
    agree = agree && !each.disagree && each.types == first->types &&
            each.native_types == first->native_types && each.mapping == first->mapping;
  }
  if (agree && first != nullptr) return first;
  return error_at(node, "D_ARGS_MULTI",
                  fmt::format("args[ ] may not be referenced because probe description {} "
                              "matches an unstable set of probes",
                              print(context.clause->probes.front())));
}

Compiled<void> become_argument(Context& context, Node& node, const ProbeArguments& arguments,
                               size_t number) {
  TypeTable& types = context.types();
  const TypeId type = arguments.types[number];
  if (type == kNoType) {
    return error_at(node, "D_ARGS_TYPE",
                    fmt::format("failed to resolve native type for args[{}]", number));
  }
  const ProviderStability stability =
      arguments.stability.value_or(stability_of_provider(context.clause->probes.front().provider));
  CLEW_TRY(note_stability(context, node, stability.arguments, "associative array args"));
  const TypeId native = arguments.native_types.empty() ? type : arguments.native_types[number];
  Node argument;
  argument.kind = NodeKind::Identifier;
  argument.name = "args";
  argument.span = node.span;
  argument.line = node.line;
  argument.storage = Storage::Argument;
  argument.builtin = Builtin::Args;
  argument.integer = arguments.mapping.empty() ? number : arguments.mapping[number];
  argument.type = native;
  argument.is_userland = arguments.is_userland;
  if (native == kNoType || is_same(types, native, type)) {
    argument.type = type;
    node = std::move(argument);
    return {};
  }
  if (!types.is_record(pointee(types, type) == kNoType ? type : pointee(types, type))) {
    convert(types, argument, type);
    node = std::move(argument);
    return {};
  }
  if (find_translator(context, native, type) == nullptr) {
    return error_at(node, "D_ARGS_XLATOR",
                    fmt::format("translator for args[{}] from {} to {} is not defined", number,
                                types.name_of(native), types.name_of(type)));
  }
  node = Node{};
  node.kind = NodeKind::Translate;
  node.span = argument.span;
  node.line = argument.line;
  node.type = type;
  node.operands.push_back(std::move(argument));
  return {};
}

Compiled<void> check_probe_argument(Context& context, Node& node) {
  if (node.operands.size() != 2) {
    return error_at(node, "D_PROTO_LEN",
                    fmt::format("args[ ] prototype mismatch: {} args passed, 1 expected",
                                node.operands.size() - 1));
  }
  Node& index = node.operands[1];
  CLEW_TRY(check_value(context, index));
  if (index.kind != NodeKind::Integer) {
    return error_at(index, "D_PROTO_ARG",
                    "args[ ] argument #1 is incompatible with prototype:\n\tprototype: integer "
                    "constant\n\t argument: " +
                        shown_type(context.types(), index));
  }
  const ProbeArguments* arguments = CLEW_TRY(arguments_of_clause(context, node));
  const uint64_t number = index.integer;
  if (number >= arguments->types.size()) {
    return error_at(
        node, "D_ARGS_IDX",
        fmt::format("index {} is out of range for {} args[ ]", static_cast<int64_t>(number),
                    print(context.clause->probes.front())));
  }
  return become_argument(context, node, *arguments, number);
}

Compiled<void> check_register(Context& context, Node& node) {
  TypeTable& types = context.types();
  CLEW_TRY(check_value(context, node.operands[1]));
  const std::span<Node> keys(node.operands.data() + 1, node.operands.size() - 1);
  CLEW_TRY(check_arguments(context, node, {"uregs", true}, parse_prototype(types, "uint64_t(int)"),
                           keys));
  const Node& index = node.operands[1];
  if (index.kind == NodeKind::Integer && index.integer >= kRegistersMax) {
    return error_at(index, "D_REGS_IDX",
                    fmt::format("index {} is out of range for array uregs",
                                static_cast<int64_t>(index.integer)));
  }
  node.storage = Storage::Builtin;
  node.builtin = Builtin::Uregs;
  node.type = type_of(types, Builtin::Uregs);
  return {};
}

Compiled<bool> check_global_element(Context& context, Node& node) {
  const Node& base = node.operands[0];
  if (const auto known = context.inlines.find(base.name);
      known != context.inlines.end() && !known->second.parameters.empty()) {
    std::vector<Node> arguments(std::make_move_iterator(node.operands.begin() + 1),
                                std::make_move_iterator(node.operands.end()));
    CLEW_TRY(check_inline_use(context, node, known->second, std::move(arguments)));
    return true;
  }
  const auto builtin = find_builtin(base.name);
  if (builtin == Builtin::Args) {
    CLEW_TRY(check_probe_argument(context, node));
    return true;
  }
  if (builtin == Builtin::Uregs) {
    CLEW_TRY(check_register(context, node));
    return true;
  }
  return false;
}

}  // namespace

Compiled<void> check_identifier(Context& context, Node& node) {
  if (is_scoped_variable(node)) return check_scoped_variable(context, node);
  if (!node.module.empty()) return check_symbol(context, node);
  if (const auto parameter = parameter_index(context, node.name)) {
    node.storage = Storage::Parameter;
    node.index = *parameter;
    node.type = context.parameters[*parameter].type;
    return {};
  }
  const auto known = context.variables.find({VariableScope::Global, node.name});
  if (known == context.variables.end()) return check_other_name(context, node);
  if (context.script.variables[known->second].is_associative) {
    return bad_reference(node, "associative array", "scalar");
  }
  become_variable(context, node, known->second);
  return {};
}

Compiled<bool> check_named_element(Context& context, Node& node) {
  const auto key = variable_key(node.operands[0]);
  if (!key) return false;
  if (key->first == VariableScope::Global && parameter_index(context, key->second)) return false;
  const auto known = context.variables.find(*key);
  if (known != context.variables.end()) {
    if (!context.script.variables[known->second].is_associative) return false;
    CLEW_TRY(check_keys(context, node));
    CLEW_TRY(become_element(context, node, known->second));
    return true;
  }
  if (key->first == VariableScope::Global) return check_global_element(context, node);
  const auto stored = context.known_types.find(*key);
  if (stored != context.known_types.end() && !stored->second.is_associative) return false;
  CLEW_TRY(check_keys(context, node));
  CLEW_TRY(make_element(context, node, kNoType));
  return true;
}

}  // namespace clew::query::d::checking
