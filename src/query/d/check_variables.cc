// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_variables.h"

#include <span>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_prototypes.h"

namespace clew::query::d::checking {
namespace {

std::span<Node> keys_of_element(Node& node) {
  return {node.operands.data() + 1, node.operands.size() - 1};
}

uint32_t add_variable(Context& context, const VariableKey& key, Variable variable) {
  variable.scope = key.first;
  variable.name = key.second;
  const auto index = static_cast<uint32_t>(context.script.variables.size());
  context.script.variables.push_back(std::move(variable));
  context.variables[key] = index;
  return index;
}

// The type that a load gives a variable of which nothing was stored yet.
TypeId loaded_type(Context& context, const VariableKey& key, uint32_t index) {
  const auto known = context.known_types.find(key);
  if (known != context.known_types.end()) return known->second.type;
  context.is_only_loaded[index] = true;
  return context.types().integer(4, true);
}

void set_stored_type(Context& context, uint32_t index, TypeId type) {
  bool& is_only_loaded = context.is_only_loaded[index];
  if (!is_only_loaded) return;
  is_only_loaded = false;
  context.loads_precede_stores = true;
  context.script.variables[index].type = type;
}

bool has_other_meaning(const Context& context, const std::string& name) {
  for (const TypeParameter& parameter : context.parameters) {
    if (parameter.name == name) return true;
  }
  return context.inlines.contains(name) || find_builtin(name) || find_subroutine(name) ||
         find_action(name) || find_aggregate(name);
}

const Node& base_of(const Node& node) {
  return node.kind == NodeKind::Index ? node.operands[0] : node;
}

// What D knows by itself is built in; an inline is a program's own.
Failure redeclared(const VariableDeclaration& declaration, bool is_inline) {
  const std::string_view kind = is_inline ? "" : "built-in ";
  return compile_error("D_DECL_IDRED",
                       fmt::format("{}identifier redeclared: {}", kind, declaration.name),
                       declaration.line);
}

std::string_view kind_of(bool is_associative) {
  return is_associative ? "associative array" : "scalar";
}

Failure declared_otherwise(const VariableDeclaration& declaration, const std::string& current,
                           const std::string& previous) {
  return compile_error("D_DECL_IDRED",
                       fmt::format("identifier redeclared: {}\n\t current: {}\n\tprevious: {}",
                                   declaration.name, current, previous),
                       declaration.line);
}

Compiled<void> check_declared_keys(const TypeTable& types, const VariableDeclaration& declaration,
                                   const Variable& known) {
  const size_t count = std::min(declaration.keys.size(), known.keys.size());
  const auto shown = [&](TypeId key, size_t number) {
    return fmt::format("{}, key #{} of type {}", kind_of(true), number, types.name_of(key));
  };
  for (size_t i = 0; i < count; ++i) {
    if (is_same(types, known.keys[i], declaration.keys[i])) continue;
    return declared_otherwise(declaration, shown(declaration.keys[i], i + 1),
                              shown(known.keys[i], i + 1));
  }
  if (declaration.keys.size() == known.keys.size()) return {};
  const auto counted = [&](TypeId type, size_t length) {
    return fmt::format("{} of {}, tuple length {}", kind_of(true), types.name_of(type), length);
  };
  return declared_otherwise(declaration, counted(declaration.type, declaration.keys.size()),
                            counted(known.type, known.keys.size()));
}

Compiled<void> check_redeclaration(Context& context, const VariableDeclaration& declaration,
                                   const Variable& known) {
  const TypeTable& types = context.types();
  const bool is_equal = known.is_associative == declaration.is_associative &&
                        is_same(types, known.type, declaration.type);
  if (is_equal) return check_declared_keys(types, declaration, known);
  const auto shown = [&](bool is_associative, TypeId type) {
    return fmt::format("{} {}", kind_of(is_associative), types.name_of(type));
  };
  return declared_otherwise(declaration, shown(declaration.is_associative, declaration.type),
                            shown(known.is_associative, known.type));
}

Compiled<bool> check_element_target(Context& context, Node& node, TypeId type) {
  const VariableKey key = *variable_key(node.operands[0]);
  const auto known = context.variables.find(key);
  if (known == context.variables.end()) {
    if (has_other_meaning(context, key.second) && key.first == VariableScope::Global) return false;
    CLEW_TRY(check_keys(context, node));
    CLEW_TRY(make_element(context, node, type));
    return true;
  }
  if (!context.script.variables[known->second].is_associative) return false;
  CLEW_TRY(check_keys(context, node));
  set_stored_type(context, known->second, type);
  CLEW_TRY(become_element(context, node, known->second));
  return true;
}

}  // namespace

std::optional<VariableKey> variable_key(const Node& node) {
  if (node.kind == NodeKind::Identifier && node.module.empty()) {
    return VariableKey{VariableScope::Global, node.name};
  }
  if (!is_scoped_variable(node)) return std::nullopt;
  const bool is_thread = node.module == "self";
  return VariableKey{is_thread ? VariableScope::Thread : VariableScope::Clause, node.name};
}

bool is_scoped_variable(const Node& node) {
  return node.kind == NodeKind::Identifier && (node.module == "self" || node.module == "this");
}

VariableIterator load_unknown(Context& context, const VariableKey& key) {
  const uint32_t index = add_variable(context, key, {});
  context.script.variables[index].type = loaded_type(context, key, index);
  return context.variables.find(key);
}

void become_variable(Context& context, Node& node, uint32_t index) {
  const Variable& variable = context.script.variables[index];
  node.storage = Storage::Variable;
  node.index = index;
  node.type = variable.type;
}

Compiled<void> check_keys(Context& context, Node& node) {
  for (Node& key : keys_of_element(node))
    CLEW_TRY(check_value(context, key));
  return {};
}

Compiled<std::vector<TypeId>> key_types(Context& context, std::span<Node> keys,
                                        std::string_view kind) {
  TypeTable& types = context.types();
  std::vector<TypeId> found;
  for (Node& key : keys) {
    if (key.kind != NodeKind::Aggregation && types.is_string_like(key.type)) {
      convert_to_string(types, key);
    }
    const bool is_key = key.kind != NodeKind::Aggregation &&
                        (is_scalar(types, key.type) || types.is_string(key.type) ||
                         (types.is_record(key.type) && types.size_of(key.type) != 0) ||
                         (is_dynamic(types, key.type) && kind == "aggregation"));
    if (!is_key) {
      return error_at(key, "D_KEY_TYPE",
                      fmt::format("{} expression may not be used as {} index: key #{}",
                                  shown_type(types, key), kind, found.size() + 1));
    }
    found.push_back(key.type);
  }
  return found;
}

Compiled<void> become_element(Context& context, Node& node, uint32_t index) {
  const Variable& variable = context.script.variables[index];
  (void)CLEW_TRY(key_types(context, keys_of_element(node), "associative array"));
  Prototype prototype;
  for (const TypeId key : variable.keys) {
    prototype.parameters.push_back({context.types().name_of(key), key});
  }
  prototype.required = static_cast<uint32_t>(variable.keys.size());
  CLEW_TRY(check_arguments(context, node, {variable.name, true}, prototype, keys_of_element(node)));
  become_variable(context, node.operands[0], index);
  node.storage = Storage::Variable;
  node.index = index;
  node.type = variable.type;
  return {};
}

Compiled<void> make_element(Context& context, Node& node, TypeId type) {
  const VariableKey key = *variable_key(node.operands[0]);
  if (key.first == VariableScope::Clause) {
    return error_at(
        node, "D_ARR_LOCAL",
        fmt::format("local variables may not be used as associative arrays: {}", key.second));
  }
  Variable variable;
  variable.is_associative = true;
  variable.keys = CLEW_TRY(key_types(context, keys_of_element(node), "associative array"));
  const uint32_t index = add_variable(context, key, std::move(variable));
  const TypeId found = type == kNoType ? loaded_type(context, key, index) : type;
  context.script.variables[index].type = found;
  return become_element(context, node, index);
}

Compiled<bool> check_target(Context& context, Node& node, TypeId type) {
  if (node.kind == NodeKind::Index) {
    if (!variable_key(node.operands[0])) return false;
    return check_element_target(context, node, type);
  }
  const auto key = variable_key(node);
  if (!key) return false;
  const auto known = context.variables.find(*key);
  if (known != context.variables.end()) {
    if (!context.script.variables[known->second].is_associative) {
      set_stored_type(context, known->second, type);
    }
    return false;
  }
  if (key->first == VariableScope::Global && has_other_meaning(context, key->second)) return false;
  Variable variable;
  variable.type = type;
  become_variable(context, node, add_variable(context, *key, std::move(variable)));
  return true;
}

bool is_new_variable(const Context& context, const Node& node) {
  const auto key = variable_key(base_of(node));
  if (!key) return false;
  const auto known = context.variables.find(*key);
  if (known == context.variables.end()) {
    return key->first != VariableScope::Global || !has_other_meaning(context, key->second);
  }
  const auto only_loaded = context.is_only_loaded.find(known->second);
  return only_loaded != context.is_only_loaded.end() && only_loaded->second;
}

Compiled<void> declare_variable(Context& context, const VariableDeclaration& declaration) {
  const VariableKey key{declaration.scope, declaration.name};
  const auto known = context.variables.find(key);
  if (known != context.variables.end()) {
    return check_redeclaration(context, declaration, context.script.variables[known->second]);
  }
  const auto known_inline = context.inlines.find(declaration.name);
  const bool is_inline =
      known_inline != context.inlines.end() && !known_inline->second.is_of_library;
  const bool is_taken = is_inline || find_builtin(declaration.name) ||
                        find_subroutine(declaration.name) || find_action(declaration.name) ||
                        find_aggregate(declaration.name);
  if (declaration.scope == VariableScope::Global && is_taken)
    return redeclared(declaration, is_inline);
  Variable variable;
  variable.type = declaration.type;
  variable.is_associative = declaration.is_associative;
  variable.keys = declaration.keys;
  add_variable(context, key, std::move(variable));
  return {};
}

}  // namespace clew::query::d::checking
