// SPDX-License-Identifier: Apache-2.0
// Expressions from the comma down to prefix operators, with C's precedence and D's ^^ between &&
// and ||.
#include <array>

#include <fmt/format.h>

#include "query/d/parser.h"

namespace clew::query::d {
namespace {

struct PrefixSymbol {
  std::string_view symbol;
  UnaryOperator op;
};
constexpr std::array<PrefixSymbol, 8> kPrefixSymbols = {{{"+", UnaryOperator::Plus},
                                                         {"-", UnaryOperator::Negate},
                                                         {"~", UnaryOperator::Complement},
                                                         {"!", UnaryOperator::Not},
                                                         {"*", UnaryOperator::Dereference},
                                                         {"&", UnaryOperator::AddressOf},
                                                         {"++", UnaryOperator::PreIncrement},
                                                         {"--", UnaryOperator::PreDecrement}}};

template <typename Table>
const typename Table::value_type* find_symbol(const Table& table, const Token& token) {
  if (token.kind != TokenKind::Punctuator) return nullptr;
  for (const auto& entry : table)
    if (token.text == entry.symbol) return &entry;
  return nullptr;
}

// Of an assignment that computes: "+=".
const BinaryOperator* find_compound(const Token& token) {
  if (token.kind != TokenKind::Punctuator || !token.text.ends_with('=')) return nullptr;
  const std::string_view text = token.text;
  const BinaryOperator* op = find_binary(text.substr(0, text.size() - 1));
  return op == nullptr || is_comparison(*op) || is_logical(*op) ? nullptr : op;
}

}  // namespace

Node Parser::node_at(NodeKind kind, const Token& token) const {
  Node node;
  node.kind = kind;
  node.span = token.span;
  node.line = token.line;
  return node;
}

Node Parser::combine(NodeKind kind, Node left, Node right) const {
  Node node;
  node.kind = kind;
  node.line = left.line;
  node.span = span_from(left.span.begin);
  node.operands.push_back(std::move(left));
  node.operands.push_back(std::move(right));
  return node;
}

Compiled<void> Parser::spend_operator() {
  if (++operators_ > kOperatorsMax) return fail_here("D_SYNTAX", "expression is too long");
  return {};
}

Compiled<Node> Parser::full_expression() {
  operators_ = 0;
  return expression();
}

Compiled<Node> Parser::expression() {
  Node left = CLEW_TRY(assignment());
  while (at(",")) {
    CLEW_TRY(spend_operator());
    CLEW_TRY(advance());
    Node right = CLEW_TRY(assignment());
    left = combine(NodeKind::Comma, std::move(left), std::move(right));
  }
  return left;
}

Compiled<Node> Parser::assignment() {
  const Nested nested(nesting_);
  CLEW_TRY(check_nesting());
  Node target = CLEW_TRY(conditional());
  const BinaryOperator* compound = find_compound(here_);
  if (compound == nullptr && !at("=")) return target;
  CLEW_TRY(advance());
  note_assigned(target);
  Node value = CLEW_TRY(assignment());
  Node node = combine(NodeKind::Assign, std::move(target), std::move(value));
  node.is_compound = compound != nullptr;
  if (compound != nullptr) node.binary = *compound;
  return node;
}

// What is assigned to is a variable from here on, even where the kernel has a type of its name.
void Parser::note_assigned(const Node& target) {
  const Node* variable = &target;
  while (variable->kind == NodeKind::Index)
    variable = &variable->operands[0];
  if (variable->kind == NodeKind::Identifier && variable->module.empty())
    names_.insert(variable->name);
}

Compiled<Node> Parser::conditional() {
  Node condition = CLEW_TRY(binary(Precedence::LogicalOr));
  if (!CLEW_TRY(accept("?"))) return condition;
  const Nested nested(nesting_);
  CLEW_TRY(check_nesting());
  Node chosen = CLEW_TRY(expression());
  CLEW_TRY(expect(":"));
  Node other = CLEW_TRY(conditional());
  Node node = combine(NodeKind::Conditional, std::move(condition), std::move(chosen));
  node.operands.push_back(std::move(other));
  return node;
}

// A slash that no operand follows ends a predicate, whose brackets have to be closed.
Compiled<void> Parser::check_open_predicate() const {
  const char next = lexer_.peek_after(0);
  const bool is_last = next == '\0' || next == '{' || next == ';' || next == '/';
  if (!is_last || (parentheses_ == 0 && brackets_ == 0)) return {};
  const char missing = parentheses_ != 0 ? ')' : ']';
  return fail_here("D_SYNTAX", fmt::format("closing {} expected in predicate before /", missing));
}

Compiled<Node> Parser::binary(Precedence least) {
  Node left = CLEW_TRY(unary());
  for (;;) {
    const bool is_symbol = here_.kind == TokenKind::Punctuator;
    const BinaryOperator* op = is_symbol ? find_binary(here_.text) : nullptr;
    if (op == nullptr || precedence_of(*op) < least) return left;
    if (in_predicate_ && at("/") && lexer_.slash_ends_predicate()) return left;
    if (at("/")) CLEW_TRY(check_open_predicate());
    CLEW_TRY(spend_operator());
    CLEW_TRY(advance());
    Node right = CLEW_TRY(binary(tighter(precedence_of(*op))));
    left = combine(NodeKind::Binary, std::move(left), std::move(right));
    left.binary = *op;
  }
}

Compiled<Node> Parser::unary() {
  const Nested nested(nesting_);
  CLEW_TRY(check_nesting());
  const PrefixSymbol* symbol = find_symbol(kPrefixSymbols, here_);
  if (symbol != nullptr) return prefix(symbol->op);
  if (at("(")) return parenthesised();
  if (at("sizeof")) return size_of();
  if (at("stringof")) return string_of();
  Node node = CLEW_TRY(primary());
  return postfix(std::move(node));
}

Compiled<Node> Parser::prefix(UnaryOperator op) {
  Node node = node_at(NodeKind::Unary, here_);
  node.unary = op;
  CLEW_TRY(advance());
  node.operands.push_back(CLEW_TRY(unary()));
  node.span = span_from(node.span.begin);
  return node;
}

// A cast, or an expression in parentheses with what follows it.
Compiled<Node> Parser::parenthesised() {
  const Bracketed bracketed(in_predicate_);
  Node node = node_at(NodeKind::Cast, here_);
  CLEW_TRY(advance());
  if (at_type()) {
    node.type = CLEW_TRY(type_name());
    CLEW_TRY(expect(")"));
    node.operands.push_back(CLEW_TRY(unary()));
    node.span = span_from(node.span.begin);
    return node;
  }
  const uint32_t begin = node.span.begin;
  node = CLEW_TRY(expression());
  CLEW_TRY(expect(")"));
  node.span = span_from(begin);
  node.is_parenthesised = true;
  return postfix(std::move(node));
}

Compiled<Node> Parser::size_of() {
  Node node = node_at(NodeKind::SizeOf, here_);
  CLEW_TRY(advance());
  Token open = here_;
  if (!CLEW_TRY(accept("("))) {
    node.operands.push_back(CLEW_TRY(unary()));
  } else if (at_type()) {
    node.type = CLEW_TRY(type_name());
    CLEW_TRY(expect(")"));
  } else {
    Node inner = CLEW_TRY(expression());
    CLEW_TRY(expect(")"));
    inner.span = span_from(open.span.begin);
    inner.is_parenthesised = true;
    node.operands.push_back(CLEW_TRY(postfix(std::move(inner))));
  }
  node.span = span_from(node.span.begin);
  return node;
}

Compiled<Node> Parser::string_of() {
  Node node = node_at(NodeKind::StringOf, here_);
  CLEW_TRY(advance());
  node.operands.push_back(CLEW_TRY(unary()));
  node.span = span_from(node.span.begin);
  return node;
}

}  // namespace clew::query::d
