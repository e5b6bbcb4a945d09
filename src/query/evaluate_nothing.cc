// SPDX-License-Identifier: Apache-2.0
// What a left join may not have found: `a == null` and `a.size == null` ask whether it has.
#include <algorithm>
#include <optional>
#include <vector>

#include "query/arithmetic.h"
#include "query/evaluator.h"
#include "query/token.h"
#include "query/walk.h"

namespace clew::query {
namespace {

bool is_null_name(const SyntaxExpression& syntax) {
  return syntax.kind == SyntaxKind::Name && same_word(syntax.text, "null");
}

bool is_left(const Query& query, uint16_t stream) {
  return stream != 0 && query.joins[stream - 1U].left;
}

// Of a query that is being made, or of one that is joined.
class Nothings {
 public:
  explicit Nothings(const Query& query) : query_(query) {
    for (const NamedExpression& let : query.lets)
      lets_.push_back(may_be(let.expression));
  }

  [[nodiscard]] bool may_be(const Expression& expression) const {
    return contains(expression, [this](const Expression& node) { return is_one(node); });
  }

 private:
  [[nodiscard]] bool is_one(const Expression& node) const {
    switch (node.kind) {
      case ExpressionKind::Field:
      case ExpressionKind::Input:
        return is_left(query_, node.stream);
      case ExpressionKind::Let:
        return lets_[node.index];
      case ExpressionKind::Value:
        return may_be(query_.values[node.index].expression);
      case ExpressionKind::Aggregate: {
        const std::vector<Expression>& arguments = query_.aggregates[node.index].arguments;
        return std::any_of(arguments.begin(), arguments.end(),
                           [this](const Expression& argument) { return may_be(argument); });
      }
      case ExpressionKind::JoinColumn: {
        const Query& inner = query_.joins[node.stream - 1U].subquery[0];
        return is_left(query_, node.stream) ||
               Nothings(inner).may_be(inner.columns[node.index].expression);
      }
      case ExpressionKind::Integer:
      case ExpressionKind::Float:
      case ExpressionKind::String:
      case ExpressionKind::Unary:
      case ExpressionKind::Binary:
      case ExpressionKind::Conditional:
      case ExpressionKind::Convert:
      case ExpressionKind::Load:
      case ExpressionKind::ReadString:
      case ExpressionKind::ReadBytes:
      case ExpressionKind::Call:
      case ExpressionKind::In:
        return false;
    }
    return false;
  }

  const Query& query_;
  std::vector<bool> lets_;
};

}  // namespace

// None: it compares with the null pointer, or with something else.
Expected<std::optional<Expression>> Evaluator::asks_for_nothing(const SyntaxExpression& syntax) {
  const bool is_first = is_null_name(syntax.kids[0]);
  const SyntaxExpression& null = syntax.kids[is_first ? 0 : 1];
  const SyntaxExpression& other = syntax.kids[is_first ? 1 : 0];
  if (!is_equality(syntax.binary) || !is_null_name(null) || find(null.text) != nullptr)
    return std::nullopt;
  if (build_.query.joins.empty()) return std::nullopt;
  Value value = CLEW_TRY(evaluate(other));
  Expression asked;
  if (value.kind == Value::Kind::Event) {
    // An event that is there has a thread.
    asked = field_expression(Field::Tid, 0, value.stream, at(other.span));
  } else {
    asked = CLEW_TRY(to_scalar(std::move(value), other.span));
  }
  if (!Nothings(build_.query).may_be(asked)) return std::nullopt;
  Expression result;
  result.kind = ExpressionKind::Call;
  result.function = Function::IsNothing;
  result.type = kInt32;
  result.span = at(syntax.span);
  result.operands.push_back(std::move(asked));
  if (syntax.binary == BinaryOperator::Equal) return result;
  return CLEW_TRY(
      make_unary(build_.report, UnaryOperator::Not, std::move(result), at(syntax.span)));
}

}  // namespace clew::query
