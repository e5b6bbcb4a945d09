// SPDX-License-Identifier: Apache-2.0
// What a declaration declares: types, variables, inline definitions, translators.
#include <fmt/format.h>

#include "query/d/parser.h"

namespace clew::query::d {
namespace {

VariableScope scope_of(StorageClass storage) {
  switch (storage) {
    case StorageClass::Self:
      return VariableScope::Thread;
    case StorageClass::This:
      return VariableScope::Clause;
    case StorageClass::None:
    case StorageClass::Typedef:
    case StorageClass::Extern:
    case StorageClass::Static:
    case StorageClass::Auto:
    case StorageClass::Register:
      return VariableScope::Global;
  }
  return VariableScope::Global;
}

bool is_associative(const Declarator& declarator) {
  return !declarator.layers.empty() &&
         declarator.layers[0].kind == DeclaratorLayer::Kind::Associative;
}

bool is_function(const Declarator& declarator) {
  return !declarator.layers.empty() && declarator.layers[0].kind == DeclaratorLayer::Kind::Function;
}

tl::unexpected<CompileError> fail_at(const Declarator& declarator, std::string tag,
                                     std::string message) {
  return compile_error(std::move(tag), std::move(message), declarator.line, declarator.span);
}

}  // namespace

// --- types and variables -------------------------------------------------------------------------

Compiled<void> Parser::declaration() {
  const Specifiers found = CLEW_TRY(specifiers());
  if (at(";") && !found.is_tagged) return fail_here("D_DECL_USELESS", "useless declaration");
  if (at(";")) return {};
  if (at("->"))
    return fail_here("D_DECL_SCOPE", "cannot specify scope in a variable declaration name");
  for (;;) {
    const Declarator declared = CLEW_TRY(declarator());
    if (declared.name.empty()) return syntax_error();
    CLEW_TRY(declare(found, declared));
    if (at("{") && is_function(declared)) return skip_body();
    if (!at(",")) return expect_last(";");
    CLEW_TRY(advance());
  }
}

Compiled<void> Parser::declare(const Specifiers& specifiers, const Declarator& declarator) {
  if (specifiers.storage == StorageClass::Auto || specifiers.storage == StorageClass::Register)
    return fail_at(declarator, "D_DECL_BADCLASS", "specified storage class not appropriate in D");
  if (specifiers.storage != StorageClass::Typedef) return declare_variable(specifiers, declarator);
  if (names_.contains(declarator.name)) {
    return fail_at(declarator, "D_DECL_IDRED",
                   fmt::format("global variable identifier redeclared: {}", declarator.name));
  }
  const TypeId type = CLEW_TRY(apply(specifiers.type, declarator, 0));
  const bool is_kept = types_.define_typedef(declarator.name, type).has_value() ||
                       is_system_typedef(declarator.name, type);
  if (!is_kept) {
    return fail_at(declarator, "D_DECL_IDRED",
                   fmt::format("typedef redeclared: {}", declarator.name));
  }
  own_typedefs_.insert(declarator.name);
  names_.erase(declarator.name);
  return {};
}

// Headers of the system define what D has already, perhaps with another sign: D's stays.
bool Parser::is_system_typedef(const std::string& name, TypeId type) {
  const TypeId known = types_.find("", Tag::None, name);
  return !own_typedefs_.contains(name) && types_.is_integer(known) && types_.is_integer(type) &&
         types_.size_of(known) == types_.size_of(type);
}

// Of a function that a header defines; ends at its last brace.
Compiled<void> Parser::skip_body() {
  for (uint64_t depth = 1; depth > 0;) {
    CLEW_TRY(advance());
    if (here_.kind == TokenKind::End) return syntax_error();
    depth += at("{") ? 1 : 0;
    depth -= at("}") ? 1 : 0;
  }
  return {};
}

// Whether there can be a variable of the type.
Compiled<void> Parser::check_object(TypeId type, const Declarator& declarator) const {
  const TypeKind kind = types_.stripped(type).kind;
  if (kind == TypeKind::Void) {
    return fail_at(declarator, "D_DECL_VOIDOBJ",
                   fmt::format("cannot have void object: {}", declarator.name));
  }
  if (kind == TypeKind::Function) {
    return fail_at(declarator, "D_DECL_COMBO",
                   fmt::format("cannot have function object: {}", declarator.name));
  }
  if (kind == TypeKind::Forward) {
    return fail_at(
        declarator, "D_DECL_INCOMPLETE",
        fmt::format("incomplete struct/union/enum {}: {}", types_.name_of(type), declarator.name));
  }
  return {};
}

// Prototypes of functions and extern declarations, as headers of C have them, declare nothing.
Compiled<void> Parser::declare_variable(const Specifiers& specifiers,
                                        const Declarator& declarator) {
  VariableDeclaration variable;
  variable.scope = scope_of(specifiers.storage);
  variable.name = declarator.name;
  variable.line = declarator.line;
  variable.is_associative = is_associative(declarator);
  variable.type = CLEW_TRY(apply(specifiers.type, declarator, variable.is_associative ? 1 : 0));
  const bool has_function_type = types_.stripped(variable.type).kind == TypeKind::Function;
  const bool is_global = variable.scope == VariableScope::Global;
  if (is_global && (has_function_type || specifiers.storage == StorageClass::Extern)) return {};
  variable.type = types_.complete(variable.type);
  const Type& made = types_.at(variable.type);
  if (made.kind == TypeKind::Array && made.count == 0) {
    return fail_at(declarator, "D_DECL_ARRNULL",
                   fmt::format("array declaration requires array dimension or tuple signature: {}",
                               declarator.name));
  }
  if (own_typedefs_.contains(variable.name)) {
    return fail_at(declarator, "D_DECL_IDRED",
                   fmt::format("typedef identifier redeclared: {}", variable.name));
  }
  CLEW_TRY(check_object(variable.type, declarator));
  if (variable.is_associative && variable.scope == VariableScope::Clause) {
    return fail_at(declarator, "D_DECL_LOCASSC",
                   fmt::format("associative arrays may not be declared as local variables: {}",
                               variable.name));
  }
  if (variable.is_associative) {
    for (const TypeParameter& key : declarator.layers[0].parameters)
      variable.keys.push_back(key.type);
  }
  if (is_global) names_.insert(variable.name);
  program_.variables.push_back(std::move(variable));
  add_item(Program::Item::Variable, program_.variables.size());
  return {};
}

// --- inline definitions --------------------------------------------------------------------------

Compiled<void> Parser::inline_definition() {
  CLEW_TRY(advance());
  const Specifiers found = CLEW_TRY(specifiers());
  if (found.storage != StorageClass::None)
    return fail_here("D_DECL_CLASS", "only one storage class allowed in a declaration");
  Declarator declared = CLEW_TRY(declarator());
  if (declared.name.empty()) return syntax_error();
  const bool is_array =
      !declared.layers.empty() && declared.layers[0].kind == DeclaratorLayer::Kind::Array;
  if (is_array) {
    return fail_at(declared, "D_DECL_ARRNULL",
                   fmt::format("inline declaration {}: {}",
                               declared.layers[0].count == 0 ? "requires array tuple signature"
                                                             : "cannot be of scalar array type",
                               declared.name));
  }
  InlineDefinition definition;
  definition.name = declared.name;
  definition.line = declared.line;
  const bool has_parameters = is_associative(declared);
  definition.type = CLEW_TRY(apply(found.type, declared, has_parameters ? 1 : 0));
  if (types_.stripped(definition.type).kind == TypeKind::Void) {
    return fail_at(declared, "D_DECL_VOIDOBJ",
                   fmt::format("cannot declare void inline: {}", definition.name));
  }
  if (has_parameters) definition.parameters = std::move(declared.layers[0].parameters);
  std::set<std::string_view> known;
  size_t number = 0;
  for (const TypeParameter& parameter : definition.parameters) {
    ++number;
    const bool is_new = parameter.name.empty() || known.insert(parameter.name).second;
    if (is_new) continue;
    return fail_at(
        declared, "D_DECL_PROTO_FORM",
        fmt::format("parameter is already declared in array prototype: {}, parameter #{}",
                    parameter.name, number));
  }
  CLEW_TRY(expect("="));
  // A parameter hides a type's name inside the definition, and only there.
  std::vector<std::string_view> hiding;
  for (const TypeParameter& parameter : definition.parameters) {
    if (names_.insert(parameter.name).second) hiding.push_back(parameter.name);
  }
  operators_ = 0;
  definition.value = CLEW_TRY(assignment());
  for (const std::string_view name : hiding)
    names_.erase(std::string(name));
  CLEW_TRY(expect_last(";"));
  names_.insert(definition.name);
  program_.inlines.push_back(std::move(definition));
  add_item(Program::Item::Inline, program_.inlines.size());
  return {};
}

// --- translators ---------------------------------------------------------------------------------

Compiled<void> Parser::translator() {
  Translator result;
  result.line = here_.line;
  CLEW_TRY(advance());
  result.output = CLEW_TRY(type_name());
  CLEW_TRY(expect("<"));
  TypeParameter input = CLEW_TRY(parameter());
  if (input.name.empty()) return syntax_error();
  CLEW_TRY(expect(">"));
  CLEW_TRY(expect("{"));
  result.input = input.type;
  result.parameter = input.name;
  const bool is_new = names_.insert(input.name).second;
  while (!at("}")) {
    Translator::Member member;
    member.line = here_.line;
    member.name = CLEW_TRY(member_name());
    CLEW_TRY(expect("="));
    operators_ = 0;
    member.value = CLEW_TRY(assignment());
    CLEW_TRY(expect(";"));
    result.members.push_back(std::move(member));
  }
  if (is_new) names_.erase(input.name);
  CLEW_TRY(advance());
  CLEW_TRY(expect_last(";"));
  program_.translators.push_back(std::move(result));
  add_item(Program::Item::Translator, program_.translators.size());
  return {};
}

}  // namespace clew::query::d
