// SPDX-License-Identifier: Apache-2.0
#include "plan/rewrite_join.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/print.h"
#include "query/walk.h"

namespace clew::plan {
namespace {

using query::Aggregate;
using query::Expression;
using query::ExpressionKind;
using query::Query;
using query::TypeKind;

using StreamSet = std::set<uint16_t>;

StreamSet stream_set_of(const Expression& expression) {
  StreamSet streams;
  query::visit(expression, [&streams](const Expression& node) {
    if (node.kind == ExpressionKind::Field || node.kind == ExpressionKind::Input ||
        node.kind == ExpressionKind::JoinColumn)
      streams.insert(node.stream);
  });
  return streams;
}

StreamSet stream_set_of(const Aggregate& aggregate) {
  return aggregate.arguments.empty() ? StreamSet{} : stream_set_of(aggregate.arguments[0]);
}

// A sum of integers is the same in any order and grouping; that of floating-point numbers is not.
bool adds_integers(const Aggregate& aggregate) {
  const bool adds = aggregate.function == query::AggregateFunction::Sum ||
                    aggregate.function == query::AggregateFunction::Average;
  return adds && query::is_integer(aggregate.arguments[0]);
}

bool is_extreme(const Aggregate& aggregate) {
  return aggregate.function == query::AggregateFunction::Min ||
         aggregate.function == query::AggregateFunction::Max;
}

// What another query brings may be nothing, of which an average has no part; the count of rows has.
bool may_be_nothing(const Aggregate& aggregate) {
  return aggregate.function == query::AggregateFunction::Average &&
         query::contains(aggregate.arguments[0], [](const Expression& node) {
           return node.kind == ExpressionKind::JoinColumn;
         });
}

// What n equal rows do to it can be said of one row and n.
bool can_repeat(const Aggregate& aggregate) {
  if (may_be_nothing(aggregate)) return false;
  return aggregate.function == query::AggregateFunction::Count ||
         aggregate.function == query::AggregateFunction::Distinct || is_extreme(aggregate) ||
         adds_integers(aggregate);
}

Expression multiply(Expression one, Expression other) {
  Expression product;
  product.kind = ExpressionKind::Binary;
  product.binary = query::BinaryOperator::Multiply;
  product.type = one.type;
  product.type.unit = query::Unit::None;
  product.operands = {std::move(one), query::convert(std::move(other), product.type)};
  return product;
}

Expression aggregate_at(size_t index, const query::Type& type) {
  Expression made;
  made.kind = ExpressionKind::Aggregate;
  made.type = type;
  made.index = static_cast<uint16_t>(index);
  return made;
}

size_t add(std::vector<Aggregate>& all, Aggregate aggregate) {
  const auto found = std::find(all.begin(), all.end(), aggregate);
  if (found != all.end()) return static_cast<size_t>(found - all.begin());
  all.push_back(std::move(aggregate));
  return all.size() - 1;
}

class Rewriter {
 public:
  explicit Rewriter(Query query) : query_(std::move(query)) {}

  Query run();

 private:
  [[nodiscard]] bool may_repeat_rows() const;
  void expand_lets();
  void find_counted();
  void keep_rows(const StreamSet& streams);
  void find_uses();
  void make_groups(uint16_t stream);
  void move_conditions(uint16_t stream, Query& groups);
  void move_keys(uint16_t stream, Query& groups);
  Expression counted_by(uint16_t stream, Aggregate aggregate);
  [[nodiscard]] Expression times(Expression value, const StreamSet& own) const;
  [[nodiscard]] Expression joined(uint16_t stream, size_t column, const query::Type& type) const;
  Expression total(Expression value, const StreamSet& own, query::Type type);
  Expression combine(const Aggregate& aggregate);
  void combine_aggregates();

  Query query_;
  StreamSet counted_;                      // Those of which groups are joined, and not each event.
  std::map<uint16_t, Expression> counts_;  // By stream of these: how many a group has.
  std::vector<Aggregate> combined_;
};

bool Rewriter::may_repeat_rows() const {
  const auto& joins = query_.joins;
  return query_.shape == query::Shape::Groups && !query_.for_events &&
         std::none_of(joins.begin(), joins.end(), [](const auto& join) { return join.left; }) &&
         std::all_of(query_.aggregates.begin(), query_.aggregates.end(), can_repeat);
}

void Rewriter::expand_lets() {
  const auto expand = [this](Expression& root) {
    query::visit(root, [this](Expression& node) {
      while (node.kind == ExpressionKind::Let)
        node = Expression(query_.lets[node.index].expression);
    });
  };
  for (Expression& condition : query_.where)
    expand(condition);
  for (query::NamedExpression& value : query_.values)
    expand(value.expression);
  for (Aggregate& aggregate : query_.aggregates) {
    for (Expression& argument : aggregate.arguments)
      expand(argument);
  }
  query_.lets.clear();
}

void Rewriter::keep_rows(const StreamSet& streams) {
  for (const uint16_t stream : streams)
    counted_.erase(stream);
}

// What needs two events at a time needs each row.
void Rewriter::find_uses() {
  for (const Expression& condition : query_.where) {
    if (const StreamSet streams = stream_set_of(condition); streams.size() > 1) keep_rows(streams);
  }
  for (const query::NamedExpression& key : query_.values) {
    const StreamSet streams = stream_set_of(key.expression);
    const TypeKind kind = key.expression.type.kind;
    const bool is_address = kind == TypeKind::Symbol || kind == TypeKind::Stack;
    if (streams.size() > 1 || is_address) keep_rows(streams);
  }
  for (const Aggregate& aggregate : query_.aggregates) {
    const StreamSet streams = stream_set_of(aggregate);
    if (streams.size() > 1 || (!is_extreme(aggregate) && !adds_integers(aggregate)))
      keep_rows(streams);
  }
}

void Rewriter::find_counted() {
  for (size_t i = 0; i < query_.joins.size(); ++i) {
    const query::Join& join = query_.joins[i];
    if (join.filter == query::JoinFilter::All && join.subquery.empty())
      counted_.insert(static_cast<uint16_t>(i + 1));
  }
  for (const query::Join& join : query_.joins)
    counted_.erase(join.after);  // It is asked when that event was.
  find_uses();
}

// --- the groups of a stream ----------------------------------------------------------------------

// As its own query has it.
Expression as_from(Expression expression) {
  query::visit(expression, [](Expression& node) { node.stream = 0; });
  return expression;
}

void Rewriter::move_conditions(uint16_t stream, Query& groups) {
  const auto is_own = [stream](const Expression& condition) {
    return stream_set_of(condition) == StreamSet{stream};
  };
  for (const Expression& condition : query_.where) {
    if (is_own(condition)) groups.where.push_back(as_from(condition));
  }
  std::erase_if(query_.where, is_own);
}

void Rewriter::move_keys(uint16_t stream, Query& groups) {
  for (query::NamedExpression& key : query_.values) {
    if (stream_set_of(key.expression) != StreamSet{stream}) continue;
    const size_t at = groups.values.size();
    groups.values.push_back({.name = key.name, .expression = as_from(key.expression)});
    Expression column;
    column.kind = ExpressionKind::Value;
    column.type = key.expression.type;
    column.index = static_cast<uint16_t>(at);
    groups.columns.push_back({.name = key.name, .expression = std::move(column)});
    key.expression = joined(stream, at, key.expression.type);
  }
}

void Rewriter::make_groups(uint16_t stream) {
  query::Join& join = query_.joins[stream - 1U];
  Query groups;
  groups.shape = query::Shape::Groups;
  groups.sources = std::exchange(join.sources, {});
  groups.inputs = std::exchange(join.inputs, {});
  groups.enumerations = query_.enumerations;
  groups.structures = query_.structures;
  move_conditions(stream, groups);
  move_keys(stream, groups);
  join.subquery.push_back(std::move(groups));
}

Expression Rewriter::joined(uint16_t stream, size_t column, const query::Type& type) const {
  Expression made;
  made.kind = ExpressionKind::JoinColumn;
  made.type = type;
  made.stream = stream;
  made.index = static_cast<uint16_t>(column);
  return made;
}

// The aggregate over the events of the stream, as a column of its groups.
Expression Rewriter::counted_by(uint16_t stream, Aggregate aggregate) {
  Query& groups = query_.joins[stream - 1U].subquery[0];
  const std::string argument =
      aggregate.arguments.empty() ? "" : query::print(aggregate.arguments[0], query_);
  std::string name = fmt::format("{}({})", abi::name_of(aggregate.function), argument);
  for (Expression& each : aggregate.arguments)
    each = as_from(std::move(each));
  const query::Type type = aggregate.type;
  const Expression cell = aggregate_at(add(groups.aggregates, std::move(aggregate)), type);
  const auto same = [&cell](const auto& column) { return column.expression == cell; };
  const auto found = std::find_if(groups.columns.begin(), groups.columns.end(), same);
  const auto at = static_cast<size_t>(found - groups.columns.begin());
  if (found == groups.columns.end())
    groups.columns.push_back({.name = std::move(name), .expression = cell});
  return joined(stream, at, type);
}

// --- the answer ----------------------------------------------------------------------------------

// For each row of the others.
Expression Rewriter::times(Expression value, const StreamSet& own) const {
  for (const uint16_t stream : counted_) {
    if (own.contains(stream)) continue;
    Expression count = counts_.at(stream);
    const bool is_one = value.kind == ExpressionKind::Integer && value.integer == 1;
    value = is_one ? query::convert(std::move(count), value.type)
                   : multiply(std::move(value), std::move(count));
  }
  return value;
}

// Behind them all: sum(value), of so many rows.
Expression Rewriter::total(Expression value, const StreamSet& own, query::Type type) {
  Aggregate sum;
  sum.function = query::AggregateFunction::Sum;
  sum.type = type;
  type.unit = query::Unit::None;
  type.enumeration = 0;
  sum.arguments.push_back(times(query::convert(std::move(value), type), own));
  const query::Type result = sum.type;
  return aggregate_at(add(combined_, std::move(sum)), result);
}

// What stands for it in columns.
Expression Rewriter::combine(const Aggregate& aggregate) {
  const StreamSet own = stream_set_of(aggregate);
  const bool is_counted = !own.empty() && counted_.contains(*own.begin());
  const query::Type integer = aggregate.arguments.empty() || aggregate.arguments[0].type.is_signed
                                  ? query::kInt64
                                  : query::kUint64;
  const auto value_of = [&](query::AggregateFunction function, const query::Type& type) {
    if (!is_counted) return aggregate.arguments[0];
    Aggregate inner = aggregate;
    inner.function = function;
    inner.type = type;
    return counted_by(*own.begin(), std::move(inner));
  };
  const Expression one = query::integer_constant(1, query::kInt64, {});
  switch (aggregate.function) {
    case query::AggregateFunction::Count:
      return total(one, {}, aggregate.type);
    case query::AggregateFunction::Sum:
      return total(value_of(query::AggregateFunction::Sum, aggregate.type), own, aggregate.type);
    case query::AggregateFunction::Average: {
      Expression sum = total(value_of(query::AggregateFunction::Sum, integer), own, integer);
      Expression quotient;
      quotient.kind = ExpressionKind::Binary;
      quotient.binary = query::BinaryOperator::Divide;
      quotient.type = aggregate.type;
      quotient.operands = {query::convert(std::move(sum), query::kFloat64),
                           query::convert(total(one, {}, query::kInt64), query::kFloat64)};
      return quotient;
    }
    case query::AggregateFunction::Min:
    case query::AggregateFunction::Max:
    case query::AggregateFunction::Distinct:
      break;
    case query::AggregateFunction::StandardDeviation:
    case query::AggregateFunction::Variance:
    case query::AggregateFunction::Quantize:
    case query::AggregateFunction::Lquantize:
    case query::AggregateFunction::Llquantize:
    case query::AggregateFunction::TopK:
    case query::AggregateFunction::Quantile:
      CLEW_ASSERT(can_repeat(aggregate));
  }
  Aggregate same = aggregate;
  if (is_counted) same.arguments = {value_of(aggregate.function, aggregate.type)};
  return aggregate_at(add(combined_, std::move(same)), aggregate.type);
}

void Rewriter::combine_aggregates() {
  std::vector<Expression> made;
  made.reserve(query_.aggregates.size());
  for (const Aggregate& aggregate : query_.aggregates)
    made.push_back(combine(aggregate));
  const auto put = [&made](Expression& root) {
    query::transform(root, [&made](Expression& node) {
      if (node.kind != ExpressionKind::Aggregate) return false;
      const query::Span span = node.span;
      node = Expression(made[node.index]);
      node.span = span;
      return true;
    });
  };
  for (query::NamedExpression& column : query_.columns)
    put(column.expression);
  for (Expression& condition : query_.having)
    put(condition);
  for (query::OrderBy& order : query_.order)
    put(order.expression);
  query_.aggregates = std::move(combined_);
}

Query Rewriter::run() {
  if (!may_repeat_rows()) return std::move(query_);
  Query whole = query_;
  expand_lets();
  find_counted();
  if (counted_.empty()) return whole;
  for (const uint16_t stream : counted_) {
    make_groups(stream);
    Aggregate count;
    count.type = query::kInt64;
    counts_.emplace(stream, counted_by(stream, std::move(count)));
  }
  combine_aggregates();
  return std::move(query_);
}

}  // namespace

Query rewrite_join(Query query) {
  if (query.joins.empty()) return query;
  return Rewriter(std::move(query)).run();
}

}  // namespace clew::plan
