// SPDX-License-Identifier: Apache-2.0
// The tree of a D program. The parser (parse.h) makes it; the checker (check.h) resolves names,
// types every node and fills the fields marked [check]. src/plan/d makes programs of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "query/d/functions.h"
#include "query/d/stability.h"
#include "query/d/types.h"
#include "query/operators.h"
#include "query/span.h"

namespace clew::query::d {

enum class NodeKind : uint8_t {
  Integer,      // integer, type (C's rules for the literal's suffix and size)
  String,       // text, unescaped
  Identifier,   // name; module when it was written module`name, "self" or "this" when it was
                // written self->name or this->name
  Aggregation,  // @name[operands...]; name may be empty ("@")
  Index,        // operands[0][operands[1..]]: an element of an array or of an associative array
  Call,         // name(operands...)
  Member,       // operands[0] . name
  Arrow,        // operands[0] -> name
  Unary,        // unary, operands[0]
  Binary,       // binary, operands[0..1]
  Assign,       // operands[0] = operands[1]; with is_compound, operands[0] binary= operands[1]
  Conditional,  // operands[0] ? operands[1] : operands[2]
  Comma,        // operands[0], operands[1]
  Cast,         // (type) operands[0]
  SizeOf,       // sizeof (type): `type` is what is measured; or with an operand, sizeof operands[0]
  OffsetOf,     // offsetof(type, name): `type` is the record
  StringOf,     // stringof(operands[0])
  Translate,    // xlate <type>(operands[0]); [check] see check.h
};

// Those of C, and D's ^^.
using query::BinaryOperator;
using query::UnaryOperator;

// What an identifier, element or member turned out to be. [check]
enum class Storage : uint8_t {
  None,        // A value: an expression's result.
  Variable,    // index in Script::variables: a scalar, or with Index an associative element
  Builtin,     // `builtin`
  Parameter,   // index of the translator's or inline function's parameter (inlined by the checker)
  Memory,      // An address: *p, p->m, p[i], a kernel symbol (`integer` = its address)
  Argument,    // args[i]: `integer` = i, type from the probe; also uregs[i]
  Macro,       // Resolved into Integer or String nodes; never seen after the checker.
  Enumerator,  // Resolved into Integer nodes; never seen after the checker.
};

struct Node {
  NodeKind kind = NodeKind::Integer;
  Span span;
  uint32_t line = 0;
  TypeId type = kNoType;  // Literals, Cast, SizeOf, OffsetOf by the parser; all others [check]

  uint64_t integer = 0;
  std::string text;    // String
  std::string name;    // Identifier, Aggregation, Call, Member, Arrow, OffsetOf
  std::string module;  // Identifier: what stood before the backquote; " " for a bare `name.
  UnaryOperator unary = UnaryOperator::Plus;
  BinaryOperator binary = BinaryOperator::Add;
  bool is_compound = false;
  bool is_parenthesised = false;  // So that `(a), b` and constants print as written in errors.
  std::vector<Node> operands;

  // [check]
  Storage storage = Storage::None;
  uint32_t index = 0;         // Of the variable; of a Call with is_extension, the function.
  bool is_extension = false;  // Call: of a function in Script::extension_functions.
  Builtin builtin = Builtin::None;
  Subroutine subroutine = Subroutine::None;  // Call, in an expression.
  MemberPlace member;                        // Member, Arrow.
  bool is_userland = false;                  // Memory: read with copyin's rules, not the kernel's.
};

// --- statements ----------------------------------------------------------------------------------

inline bool is_increment(const Node& node) {
  if (node.kind != NodeKind::Unary) return false;
  return node.unary == UnaryOperator::PreIncrement || node.unary == UnaryOperator::PreDecrement ||
         node.unary == UnaryOperator::PostIncrement || node.unary == UnaryOperator::PostDecrement;
}

// One that int can hold is promoted to int, whatever its type is (C11, 6.3.1.1); an assignment to
// one has its value.
inline bool is_narrow_bit_field(const Node& node) {
  if (node.kind == NodeKind::Assign || is_increment(node))
    return is_narrow_bit_field(node.operands[0]);
  const bool is_member = node.kind == NodeKind::Member || node.kind == NodeKind::Arrow;
  return is_member && node.member.bit_size != 0 && node.member.bit_size < 32;
}

enum class StatementKind : uint8_t {
  Expression,  // expression; for its effects (assignments, subroutines), or none: a default action
  Action,      // [check] a call to an action: `action`, expression.operands
  Aggregate,   // [check] @a[keys] = function(arguments); expression = the Assign node
  If,          // expression, then_part, else_part
};

struct Statement {
  StatementKind kind = StatementKind::Expression;
  Node expression;
  std::vector<Statement> then_part;
  std::vector<Statement> else_part;
  // [check]
  Action action = Action::None;
  uint32_t aggregation = 0;  // Aggregate; and actions on one: index in Script::aggregations
  std::vector<uint32_t> aggregations;  // printa
  std::optional<uint32_t> format;      // index in Script::formats: printf, printa, system, freopen
};

// All of them, an If before its parts.
template <typename Visitor>
void visit_statements(const std::vector<Statement>& body, const Visitor& visitor) {
  for (const Statement& statement : body) {
    visitor(statement);
    visit_statements(statement.then_part, visitor);
    visit_statements(statement.else_part, visitor);
  }
}

// --- declarations --------------------------------------------------------------------------------

// `provider:module:function:name`, empty fields match anything. Or a number (probe id).
struct ProbeDescription {
  std::string provider;
  std::string module;
  std::string function;
  std::string name;
  std::optional<uint64_t> id;
  std::string text;  // As it was written, for messages.
  Span span;
  uint32_t line = 0;
};

struct Clause {
  std::vector<ProbeDescription> probes;
  std::optional<Node> predicate;
  std::vector<Statement> body;
  bool has_body = false;  // `BEGIN` and `BEGIN {}` both perform the default action.
  Stability stability;    // Of all that it names, when it was checked.
  Span span;
  uint32_t line = 0;
};

enum class VariableScope : uint8_t { Global, Thread, Clause };

struct VariableDeclaration {
  VariableScope scope = VariableScope::Global;
  std::string name;
  TypeId type = kNoType;
  bool is_associative = false;
  std::vector<TypeId> keys;
  uint32_t line = 0;
};

// inline TYPE name = value;   inline TYPE name[TYPE parameter, ...] = value;
struct InlineDefinition {
  std::string name;
  TypeId type = kNoType;
  std::vector<TypeParameter> parameters;
  Node value;
  uint32_t line = 0;
};

// translator OUTPUT < INPUT parameter > { member = value; ... };
struct Translator {
  TypeId output = kNoType;
  TypeId input = kNoType;
  std::string parameter;
  struct Member {
    std::string name;
    Node value;
    uint32_t line = 0;
  };
  std::vector<Member> members;
  uint32_t line = 0;
};

struct PragmaOption {
  std::string name;
  std::optional<std::string> value;
  uint32_t line = 0;
};

// #pragma D depends_on KIND NAME: what must be there, or the program cannot run.
struct Dependency {
  std::string kind;  // library, module, provider, class
  std::string name;
  uint32_t line = 0;
};

// A program as it was written. Definitions come before their uses, so a clause sees only what
// stands above it: `order` keeps that.
struct Program {
  std::vector<Clause> clauses;
  std::vector<VariableDeclaration> variables;
  std::vector<InlineDefinition> inlines;
  std::vector<Translator> translators;
  std::vector<PragmaOption> options;
  std::vector<Dependency> dependencies;
  std::vector<AttributesPragma> attributes;
  enum class Item : uint8_t { Clause, Variable, Inline, Translator, Option };
  std::vector<std::pair<Item, uint32_t>> order;
};

}  // namespace clew::query::d
