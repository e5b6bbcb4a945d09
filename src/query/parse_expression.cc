// SPDX-License-Identifier: Apache-2.0
// Expressions: C's operators and precedence, with `in`, `like`, lambdas and `new { … }`.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "query/parser.h"

namespace clew::query {
namespace {

struct Prefix {
  std::string_view symbol;
  SyntaxKind kind;
};
constexpr std::array<Prefix, 6> kPrefixes = {{{"-", SyntaxKind::Negate},
                                              {"+", SyntaxKind::Plus},
                                              {"~", SyntaxKind::Complement},
                                              {"!", SyntaxKind::Not},
                                              {"*", SyntaxKind::Dereference},
                                              {"&", SyntaxKind::AddressOf}}};

constexpr std::array<std::string_view, 30> kTypeWords = {
    "char",     "short",    "int",      "long",   "signed",  "unsigned", "float",     "double",
    "bool",     "_Bool",    "void",     "int8_t", "int16_t", "int32_t",  "int64_t",   "uint8_t",
    "uint16_t", "uint32_t", "uint64_t", "size_t", "ssize_t", "intptr_t", "uintptr_t", "off_t",
    "pid_t",    "struct",   "union",    "enum",   "class",   "const"};

}  // namespace

bool is_type_word(std::string_view word) {
  for (const std::string_view candidate : kTypeWords) {
    if (word == candidate) return true;
  }
  return false;
}

Expected<SyntaxExpression> Parser::node(SyntaxKind kind, uint32_t begin,
                                        std::vector<SyntaxExpression> kids) {
  SyntaxExpression result;
  result.kind = kind;
  result.span = span_from(begin);
  for (const SyntaxExpression& kid : kids) {
    result.depth = std::max(result.depth, kid.depth + 1);
  }
  result.kids = std::move(kids);
  if (result.depth > kNestingMax) {
    return report_.fail(result.span,
                        fmt::format("this is nested deeper than {} levels", kNestingMax));
  }
  return result;
}

// expression := lambda | binary ["?" expression ":" expression]
Expected<SyntaxExpression> Parser::expression() {
  const Nesting nesting(nesting_);
  CLEW_TRY(check_nesting());
  if (at_lambda()) return lambda();
  const uint32_t begin = peek().span.begin;
  SyntaxExpression condition = CLEW_TRY(binary_expression(Precedence::LogicalOr));
  if (!take_symbol("?")) return condition;
  SyntaxExpression yes = CLEW_TRY(expression());
  CLEW_TRY(expect_symbol(":", "and the other value of '?'"));
  SyntaxExpression no = CLEW_TRY(expression());
  return node(SyntaxKind::Conditional, begin,
              {std::move(condition), std::move(yes), std::move(no)});
}

Expected<SyntaxExpression> Parser::binary_expression(Precedence least) {
  return binary_tail(CLEW_TRY(unary()), least);
}

Expected<SyntaxExpression> Parser::binary_tail(SyntaxExpression left, Precedence least) {
  for (;;) {
    const bool may_compare = least <= Precedence::Comparison;
    const bool is_not_in = at_word("not") && (at_word("in", 1) || at_word("like", 1));
    if (may_compare && (at_word("in") || at_word("like") || is_not_in)) {
      left = CLEW_TRY(membership(std::move(left)));
      continue;
    }
    if (at_symbol("=")) return fail_here("'=' gives a name; compare with '=='");
    const std::string_view symbol = at_word("and") ? "&&" : at_word("or") ? "||" : peek().text;
    const BinaryOperator* found = find_binary(symbol);
    if (found == nullptr || precedence_of(*found) < least) return left;
    take();
    SyntaxExpression right = CLEW_TRY(binary_expression(tighter(precedence_of(*found))));
    const uint32_t begin = left.span.begin;
    left = CLEW_TRY(node(SyntaxKind::Binary, begin, {std::move(left), std::move(right)}));
    left.binary = *found;
  }
}

// left ["not"] "in" "(" expression { "," expression } ")"  |  left ["not"] "like" pattern
Expected<SyntaxExpression> Parser::membership(SyntaxExpression left) {
  const uint32_t begin = left.span.begin;
  const bool is_negated = take_word("not");
  SyntaxExpression result;
  if (take_word("like")) {
    SyntaxExpression pattern = CLEW_TRY(binary_expression(tighter(Precedence::Comparison)));
    result = CLEW_TRY(node(SyntaxKind::Like, begin, {std::move(left), std::move(pattern)}));
  } else {
    take();  // in
    if (!at_symbol("(")) return fail_expected("'(' and values after 'in'");
    std::vector<SyntaxExpression> kids = CLEW_TRY(arguments());
    if (kids.empty()) return report_.fail(span_from(begin), "'in' needs at least one value");
    kids.insert(kids.begin(), std::move(left));
    result = CLEW_TRY(node(SyntaxKind::In, begin, std::move(kids)));
  }
  if (!is_negated) return result;
  return node(SyntaxKind::Not, begin, {std::move(result)});
}

Expected<SyntaxExpression> Parser::unary() {
  const Nesting nesting(nesting_);
  CLEW_TRY(check_nesting());
  const uint32_t begin = peek().span.begin;
  if (at_cast()) return cast();
  for (const Prefix& prefix : kPrefixes) {
    const bool is_word = prefix.symbol == "!" && at_word("not");
    if (!at_symbol(prefix.symbol) && !is_word) continue;
    take();
    SyntaxExpression operand = CLEW_TRY(unary());
    return node(prefix.kind, begin, {std::move(operand)});
  }
  return postfix();
}

Expected<SyntaxExpression> Parser::postfix() {
  return postfix_tail(CLEW_TRY(primary()));
}

Expected<SyntaxExpression> Parser::postfix_tail(SyntaxExpression left) {
  for (;;) {
    const uint32_t begin = left.span.begin;
    if (at_symbol(".") || at_symbol("->")) {
      take();
      const Token name = CLEW_TRY(expect_name("a member's name"));
      left = CLEW_TRY(node(SyntaxKind::Member, begin, {std::move(left)}));
      left.text = name.text;
      left.name_span = name.span;
    } else if (at_symbol("(")) {
      std::vector<SyntaxExpression> kids = CLEW_TRY(arguments());
      kids.insert(kids.begin(), std::move(left));
      left = CLEW_TRY(node(SyntaxKind::Call, begin, std::move(kids)));
    } else if (take_symbol("[")) {
      SyntaxExpression index = CLEW_TRY(expression());
      CLEW_TRY(expect_symbol("]", "after the index"));
      left = CLEW_TRY(node(SyntaxKind::Index, begin, {std::move(left), std::move(index)}));
    } else {
      return left;
    }
  }
}

Expected<SyntaxExpression> Parser::primary() {
  const uint32_t begin = peek().span.begin;
  if (take_symbol("(")) {
    SyntaxExpression inner = CLEW_TRY(expression());
    CLEW_TRY(expect_symbol(")", "to match '('"));
    return inner;
  }
  if (at_word("new") && at_symbol("{", 1)) return new_record();
  if (peek().kind != TokenKind::Name) return literal();
  if (is_clause_word(peek().text) && !at_symbol("(", 1) && !at_symbol(".", 1)) {
    return fail_expected("an expression");
  }
  const Token name = take();
  SyntaxExpression result = CLEW_TRY(node(SyntaxKind::Name, begin, {}));
  result.text = name.text;
  return result;
}

Expected<SyntaxExpression> Parser::literal() {
  const Token token = peek();
  SyntaxExpression result;
  result.span = token.span;
  result.integer = token.integer;
  result.real = token.real;
  result.text = token.value;
  switch (token.kind) {
    case TokenKind::Integer: {
      // C 2011, 6.4.4.1: the first of these types that can hold the value.
      const bool fits_int = token.integer <= INT32_MAX && !token.is_long;
      const bool fits_uint = token.integer <= UINT32_MAX && !token.is_long;
      const bool may_be_unsigned = token.is_unsigned || !token.is_decimal;
      const bool is_small =
          token.is_unsigned ? fits_uint : fits_int || (fits_uint && may_be_unsigned);
      result.type.size_bytes = is_small ? 4 : 8;
      const bool fits_signed = is_small ? fits_int : token.integer <= INT64_MAX;
      result.type.is_signed = !token.is_unsigned && fits_signed;
      break;
    }
    case TokenKind::Float:
      result.kind = SyntaxKind::Float;
      break;
    case TokenKind::String:
      result.kind = SyntaxKind::String;
      break;
    case TokenKind::Duration:
      result.kind = SyntaxKind::Duration;
      break;
    case TokenKind::Frequency:
      result.kind = SyntaxKind::Frequency;
      break;
    case TokenKind::End:
    case TokenKind::Name:
    case TokenKind::Symbol:
      return fail_expected("an expression");
  }
  take();
  return result;
}

// --- lambdas and records -------------------------------------------------------------------------

bool Parser::at_lambda() const {
  if (peek().kind == TokenKind::Name) return at_symbol("=>", 1);
  if (!at_symbol("(")) return false;
  size_t ahead = 1;
  while (peek(ahead).kind == TokenKind::Name && at_symbol(",", ahead + 1))
    ahead += 2;
  return peek(ahead).kind == TokenKind::Name && at_symbol(")", ahead + 1) &&
         at_symbol("=>", ahead + 2);
}

Expected<SyntaxExpression> Parser::lambda() {
  const uint32_t begin = peek().span.begin;
  std::vector<std::string> names;
  const bool is_list = take_symbol("(");
  do {
    names.emplace_back(take().text);
  } while (is_list && take_symbol(","));
  if (is_list) take();  // )
  take();               // =>
  SyntaxExpression body = CLEW_TRY(expression());
  SyntaxExpression result = CLEW_TRY(node(SyntaxKind::Lambda, begin, {std::move(body)}));
  result.names = std::move(names);
  return result;
}

Expected<SyntaxExpression> Parser::new_record() {
  const uint32_t begin = peek().span.begin;
  take();  // new
  take();  // {
  std::vector<std::string> names;
  std::vector<SyntaxExpression> kids;
  do {
    SyntaxItem item = CLEW_TRY(select_item());
    names.push_back(std::move(item.name));
    kids.push_back(std::move(item.expression));
  } while (take_symbol(","));
  CLEW_TRY(expect_symbol("}", "after the members of 'new'"));
  SyntaxExpression result = CLEW_TRY(node(SyntaxKind::New, begin, std::move(kids)));
  result.names = std::move(names);
  return result;
}

// --- casts ---------------------------------------------------------------------------------------

// "(" type words …, or "(" NAME {"::" NAME} ["*" …] ")": with a star the second form cannot be an
// expression; without one it is a cast when an operand follows, as in `(State)e.arg1`.
bool Parser::at_cast() const {
  if (!at_symbol("(") || peek(1).kind != TokenKind::Name) return false;
  if (is_type_word(peek(1).text)) return true;
  size_t ahead = 2;
  while (at_symbol("::", ahead) && peek(ahead + 1).kind == TokenKind::Name)
    ahead += 2;
  const bool is_pointer = at_symbol("*", ahead);
  while (at_symbol("*", ahead))
    ++ahead;
  return at_symbol(")", ahead) && (is_pointer || starts_operand(ahead + 1));
}

// What may follow a value instead (`-`, `*`, `in`, a clause) starts none.
bool Parser::starts_operand(size_t ahead) const {
  switch (peek(ahead).kind) {
    case TokenKind::Name:
      for (const std::string_view word : {"in", "like", "not", "and", "or", "equals"}) {
        if (at_word(word, ahead)) return false;
      }
      return !is_clause_word(peek(ahead).text);
    case TokenKind::Integer:
    case TokenKind::Float:
      return true;
    case TokenKind::Symbol:
      return at_symbol("(", ahead);
    case TokenKind::String:
    case TokenKind::Duration:
    case TokenKind::Frequency:
    case TokenKind::End:
      return false;
  }
  return false;
}

Expected<SyntaxExpression> Parser::cast() {
  const uint32_t begin = peek().span.begin;
  take();  // (
  SyntaxType type = CLEW_TRY(type_name());
  CLEW_TRY(expect_symbol(")", "after the type"));
  SyntaxExpression operand = CLEW_TRY(unary());
  SyntaxExpression result = CLEW_TRY(node(SyntaxKind::Cast, begin, {std::move(operand)}));
  result.cast = std::move(type);
  return result;
}

Expected<SyntaxType> Parser::type_name() {
  constexpr uint8_t kPointersMax = 8;
  SyntaxType type;
  while (peek().kind == TokenKind::Name) {
    const Token word = take();
    if (word.text == "const") continue;
    if (!type.name.empty() && !type.name.ends_with("::")) type.name += ' ';
    type.name += word.text;
    if (take_symbol("::")) type.name += "::";
  }
  while (take_symbol("*")) {
    take_word("const");
    if (++type.pointers > kPointersMax) return fail_here("a type has at most 8 stars");
  }
  return type;
}

}  // namespace clew::query
