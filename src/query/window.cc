// SPDX-License-Identifier: Apache-2.0
#include "query/window.h"

#include <functional>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/walk.h"

namespace clew::query {
namespace {

constexpr Type kTime{.unit = Unit::Timestamp};

// Unsigned: programs in the kernel cannot divide what has a sign.
Expression unsigned_binary(BinaryOperator op, Expression left, uint64_t right) {
  Expression result;
  result.kind = ExpressionKind::Binary;
  result.binary = op;
  result.type = left.type;
  result.span = left.span;
  Expression constant = integer_constant(static_cast<int64_t>(right), kUint64, left.span);
  result.operands.push_back(std::move(left));
  result.operands.push_back(std::move(constant));
  return result;
}

}  // namespace

uint64_t pane_ns(const TimeWindow& window) {
  const bool is_hopping = window.kind == WindowKind::Hopping;
  const uint64_t width_ns = is_hopping ? std::gcd(window.size_ns, window.step_ns) : window.size_ns;
  CLEW_ASSERT(width_ns != 0);
  return width_ns;
}

Expression pane_number(uint64_t pane_ns, int64_t epoch_ns, Span span) {
  Expression time = convert(field_expression(Field::Time, 0, 0, span), kUint64);
  time.type.unit = Unit::None;
  if (epoch_ns != 0)
    time = unsigned_binary(BinaryOperator::Add, std::move(time), static_cast<uint64_t>(epoch_ns));
  return convert(unsigned_binary(BinaryOperator::Divide, std::move(time), pane_ns), kTime);
}

void set_panes(Query& query, int64_t epoch_ns) {
  if (!query.window) return;
  Expression& number = query.values[kPaneValue].expression;
  number = pane_number(pane_ns(*query.window), epoch_ns, number.span);
}

namespace {

void put_ahead(Query& query, int64_t ahead_ns, const std::function<bool(const Expression&)>& is) {
  const auto put = [&](Expression& node) {
    if (!is(node)) return false;
    Expression time = std::move(node);
    node = {};
    node.kind = ExpressionKind::Binary;
    node.binary = BinaryOperator::Add;
    node.type = time.type;
    node.span = time.span;
    Expression ahead = convert(integer_constant(ahead_ns, kInt64, time.span), time.type);
    node.operands.push_back(std::move(time));
    node.operands.push_back(std::move(ahead));
    return true;
  };
  for (Source& source : query.sources) {
    for (Expression& input : source.inputs)
      transform(input, put);
  }
  for (NamedExpression& let : query.lets)
    transform(let.expression, put);
  for (Expression& condition : query.where)
    transform(condition, put);
  for (size_t i = query.window ? kPaneValue + 1 : 0; i < query.values.size(); ++i)
    transform(query.values[i].expression, put);
  for (Aggregate& aggregate : query.aggregates) {
    for (Expression& argument : aggregate.arguments)
      transform(argument, put);
  }
}

}  // namespace

void set_times_ahead(Query& query, int64_t ahead_ns) {
  put_ahead(query, ahead_ns, [](const Expression& node) {
    return node.kind == ExpressionKind::Field && node.field == Field::Time;
  });
}

void set_joined_times_ahead(Query& query, int64_t ahead_ns) {
  put_ahead(query, ahead_ns, [](const Expression& node) {
    return node.kind == ExpressionKind::Input && node.type.unit == Unit::Timestamp;
  });
}

Expression window_start(Span span) {
  Expression start;
  start.kind = ExpressionKind::Value;
  start.type = kTime;
  start.index = kPaneValue;
  start.span = span;
  return start;
}

bool uses_window(const Expression& expression) {
  return contains(expression,
                  [](const Expression& node) { return node.kind == ExpressionKind::Value; });
}

}  // namespace clew::query
