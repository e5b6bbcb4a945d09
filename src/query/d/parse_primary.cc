// SPDX-License-Identifier: Apache-2.0
// The leaves of expressions, and what is written behind them: [ ], ( ), ., ->, ++ and --.
#include <fmt/format.h>

#include "query/d/parser.h"

namespace clew::query::d {

Compiled<Node> Parser::primary() {
  switch (here_.kind) {
    case TokenKind::Integer: {
      Node node = node_at(NodeKind::Integer, here_);
      node.integer = here_.integer;
      node.type = types_.find_base(here_.type_name);
      CLEW_TRY(advance());
      return node;
    }
    case TokenKind::String: {
      Node node = node_at(NodeKind::String, here_);
      node.text = here_.value;
      node.type = types_.string_type();
      CLEW_TRY(advance());
      return node;
    }
    case TokenKind::Identifier:
      return named();
    case TokenKind::Aggregation:
      return aggregation();
    case TokenKind::Keyword:
      if (at("self") || at("this")) return scoped_variable();
      if (at("offsetof")) return offset_of();
      if (at("xlate")) return translate();
      return syntax_error();
    case TokenKind::Punctuator:
    case TokenKind::End:
      return syntax_error();
  }
  return syntax_error();
}

Compiled<Node> Parser::named() {
  Node node = node_at(NodeKind::Identifier, here_);
  node.name = here_.name;
  node.module = here_.module;
  CLEW_TRY(advance());
  if (!CLEW_TRY(accept("("))) return node;
  node.kind = NodeKind::Call;
  node.operands = CLEW_TRY(arguments(")"));
  node.span = span_from(node.span.begin);
  return node;
}

Compiled<Node> Parser::aggregation() {
  Node node = node_at(NodeKind::Aggregation, here_);
  node.name = here_.name;
  CLEW_TRY(advance());
  if (CLEW_TRY(accept("["))) {
    if (at("]")) return syntax_error();
    node.operands = CLEW_TRY(arguments("]"));
  }
  node.span = span_from(node.span.begin);
  return node;
}

// self->name and this->name are one Identifier.
Compiled<Node> Parser::scoped_variable() {
  Node node = node_at(NodeKind::Identifier, here_);
  node.module = here_.text;
  CLEW_TRY(advance());
  CLEW_TRY(expect("->"));
  node.name = CLEW_TRY(member_name());
  node.span = span_from(node.span.begin);
  return node;
}

Compiled<Node> Parser::offset_of() {
  const Bracketed bracketed(in_predicate_);
  Node node = node_at(NodeKind::OffsetOf, here_);
  CLEW_TRY(advance());
  CLEW_TRY(expect("("));
  if (!at_type()) return syntax_error();
  node.type = CLEW_TRY(type_name());
  CLEW_TRY(expect(","));
  node.name = CLEW_TRY(member_name());
  CLEW_TRY(expect(")"));
  node.span = span_from(node.span.begin);
  return node;
}

Compiled<Node> Parser::translate() {
  const Bracketed bracketed(in_predicate_);
  Node node = node_at(NodeKind::Translate, here_);
  CLEW_TRY(advance());
  CLEW_TRY(expect("<"));
  if (!at_type()) return syntax_error();
  node.type = CLEW_TRY(type_name());
  CLEW_TRY(expect(">"));
  CLEW_TRY(expect("("));
  node.operands.push_back(CLEW_TRY(expression()));
  CLEW_TRY(expect(")"));
  node.span = span_from(node.span.begin);
  return node;
}

// --- behind them ---------------------------------------------------------------------------------

// Up to `close`, which is consumed.
Compiled<std::vector<Node>> Parser::arguments(std::string_view close) {
  const Bracketed bracketed(in_predicate_);
  std::vector<Node> list;
  if (CLEW_TRY(accept(close))) return list;
  for (;;) {
    list.push_back(CLEW_TRY(assignment()));
    if (CLEW_TRY(accept(close))) return list;
    CLEW_TRY(expect(","));
  }
}

// Members of C may have names that are keywords of D.
Compiled<std::string> Parser::member_name() {
  if (here_.kind != TokenKind::Keyword) return identifier();
  std::string name = here_.text;
  CLEW_TRY(advance());
  return name;
}

Compiled<Node> Parser::postfix(Node node) {
  if (at("(")) return fail_here("D_FUNC_IDENT", "function designator is not of function type");
  while (at("[") || at(".") || at("->") || at("++") || at("--")) {
    CLEW_TRY(spend_operator());
    node = CLEW_TRY(postfix_step(std::move(node)));
    if (at("(")) return fail_here("D_FUNC_IDENT", "function designator is not of function type");
  }
  return node;
}

Compiled<Node> Parser::postfix_step(Node node) {
  Node outer = node_at(NodeKind::Unary, here_);
  outer.line = node.line;
  outer.span.begin = node.span.begin;
  const std::string symbol = here_.text;
  outer.operands.push_back(std::move(node));
  CLEW_TRY(advance());
  if (symbol == "[") {
    outer.kind = NodeKind::Index;
    if (at("]")) return syntax_error();
    std::vector<Node> keys = CLEW_TRY(arguments("]"));
    for (Node& key : keys)
      outer.operands.push_back(std::move(key));
  } else if (symbol == "." || symbol == "->") {
    outer.kind = symbol == "." ? NodeKind::Member : NodeKind::Arrow;
    outer.name = CLEW_TRY(member_name());
  } else {
    outer.unary = symbol == "++" ? UnaryOperator::PostIncrement : UnaryOperator::PostDecrement;
  }
  outer.span = span_from(outer.span.begin);
  return outer;
}

}  // namespace clew::query::d
