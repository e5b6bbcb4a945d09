// SPDX-License-Identifier: Apache-2.0
#include "answer/columns.h"

#include <algorithm>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "aggregate/function.h"
#include "plan/coder.h"
#include "plan/evaluate.h"
#include "plan/update.h"
#include "query/window.h"

namespace clew::answer {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using query::Expression;
using query::TypeKind;

ColumnType column_type(const query::Type& type) {
  if (type.unit == query::Unit::Timestamp) return ColumnType::Time;
  switch (type.kind) {
    case TypeKind::Integer:
      if (type.enumeration != 0) return ColumnType::Enum;
      if (type.unit == query::Unit::Address) return ColumnType::Address;
      return type.is_signed ? ColumnType::Integer : ColumnType::Unsigned;
    case TypeKind::Float:
      return ColumnType::Float;
    case TypeKind::String:
    case TypeKind::Bytes:
    case TypeKind::Symbol:
      return ColumnType::String;
    case TypeKind::Stack:
      return ColumnType::Stack;
  }
  return ColumnType::String;
}

aggregate::Unit unit_of(query::Unit unit) {
  return unit == query::Unit::Nanoseconds ? aggregate::Unit::Nanoseconds : aggregate::Unit::None;
}

// Of clusters: what they are of, which one it is and what that looks like, and how far off.
aggregate::ColumnRole role_in_clusters(const query::Query& query, const Expression& expression) {
  using aggregate::ColumnRole;
  const size_t by = query.clustering->by.size();
  if (expression.kind != query::ExpressionKind::Value) return ColumnRole::Plain;
  if (expression.index < by) return ColumnRole::Key;
  switch (static_cast<query::ClusterColumn>(expression.index - by)) {
    case query::ClusterColumn::Cluster:
      return ColumnRole::Cluster;
    case query::ClusterColumn::Centre:
      return ColumnRole::Centre;
    case query::ClusterColumn::Distance:
      return ColumnRole::Aggregate;
    case query::ClusterColumn::Difference:
      break;
  }
  return ColumnRole::Plain;
}

bool is_printed(const Expression& expression) {
  return expression.kind == query::ExpressionKind::Call &&
         expression.function == query::Function::Print;
}

aggregate::ColumnRole role_of(const query::Query& query, const Expression& expression) {
  if (query::has_aggregate(expression)) return aggregate::ColumnRole::Aggregate;
  return query.aggregates.empty() ? aggregate::ColumnRole::Plain : aggregate::ColumnRole::Key;
}

Column column_of(const query::Query& query, const query::NamedExpression& column) {
  const Expression& e = column.expression;
  Column result{.name = column.name,
                .type = is_printed(e) ? ColumnType::Record : column_type(e.type),
                .unit = unit_of(e.type.unit),
                .role = role_of(query, e)};
  if (e.kind == query::ExpressionKind::Aggregate) {
    const aggregate::AggregateSpec spec = plan::spec_of(query.aggregates[e.index]);
    result.approximate = aggregate::approximate(spec);
    const ColumnType type = aggregate::result_type(spec);
    if (type == ColumnType::Histogram || type == ColumnType::TopList) result.type = type;
  }
  return result;
}

// Counts and sums do, and so do sums and multiples of what does.
bool adds_up(const query::Query& query, const Expression& e) {
  using query::BinaryOperator;
  if (e.kind == query::ExpressionKind::Aggregate) {
    return aggregate::adds_up(query.aggregates[e.index].function);
  }
  if (e.kind == query::ExpressionKind::Unary) {
    return e.unary == query::UnaryOperator::Negate && adds_up(query, e.operands[0]);
  }
  if (e.kind == query::ExpressionKind::Convert) return adds_up(query, e.operands[0]);
  if (e.kind != query::ExpressionKind::Binary) return false;
  const Expression& left = e.operands[0];
  const Expression& right = e.operands[1];
  const auto multiple = [&](const Expression& one, const Expression& other) {
    return adds_up(query, one) && !query::has_aggregate(other);
  };
  if (e.binary == BinaryOperator::Add || e.binary == BinaryOperator::Subtract) {
    return adds_up(query, left) && adds_up(query, right);
  }
  if (e.binary == BinaryOperator::Divide) return multiple(left, right);
  return e.binary == BinaryOperator::Multiply && (multiple(left, right) || multiple(right, left));
}

// Of durations nobody knows that they are negative.
bool only_grows(const query::Query& query, const Expression& e) {
  if (e.kind != query::ExpressionKind::Aggregate) return false;
  const query::Aggregate& aggregate = query.aggregates[e.index];
  if (aggregate.function == abi::AggregateFunction::Count) return true;
  return aggregate.function == abi::AggregateFunction::Sum &&
         (!aggregate.type.is_signed || aggregate.type.unit == query::Unit::Nanoseconds);
}

std::optional<uint32_t> sum_column(const query::Query& query, const Expression& histogram) {
  const query::Aggregate& counted = query.aggregates[histogram.index];
  for (uint32_t i = 0; i < query.columns.size(); ++i) {
    const Expression& e = query.columns[i].expression;
    if (e.kind != query::ExpressionKind::Aggregate) continue;
    const query::Aggregate& other = query.aggregates[e.index];
    if (other.function == abi::AggregateFunction::Sum && other.arguments == counted.arguments)
      return i;
  }
  return std::nullopt;
}

// At all of its sources.
bool is_of_kernel(const query::Query& query, const Expression& column) {
  if (column.type.kind != TypeKind::Stack) return false;
  const Expression& e =
      column.kind == query::ExpressionKind::Value ? query.values[column.index].expression : column;
  return std::all_of(query.sources.begin(), query.sources.end(), [&](const query::Source& source) {
    const Expression& stack = plan::meaning_of(query, source, e);
    return stack.field == query::Field::KernelStack ||
           (stack.field == query::Field::Stack && query::is_kernel_source(source.kind));
  });
}

}  // namespace

aggregate::TableSchema schema_of(const query::Query& query) {
  aggregate::TableSchema schema;
  for (const query::NamedExpression& value : query.values)
    schema.keys.push_back(column_of(query, value));
  for (const query::Aggregate& aggregate : query.aggregates) {
    if (aggregate.function == abi::AggregateFunction::TopK) {
      schema.keys.push_back(column_of(query, {.name = "", .expression = aggregate.arguments[0]}));
    }
    schema.aggregates.push_back({.name = "", .spec = plan::spec_of(aggregate)});
  }
  return schema;
}

namespace {

std::vector<Column> columns_of_clusters(const query::Query& query) {
  std::vector<Column> columns;
  for (const query::NamedExpression& column : query.clustering->columns) {
    const Expression& e = column.expression;
    columns.push_back({.name = column.name,
                       .type = column_type(e.type),
                       .unit = unit_of(e.type.unit),
                       .role = role_in_clusters(query, e),
                       .adds_up = false});
  }
  return columns;
}

}  // namespace

std::vector<Column> columns_of(const query::Query& query) {
  if (query.clustering) return columns_of_clusters(query);
  std::vector<Column> columns;
  columns.reserve(query.columns.size());
  for (const query::NamedExpression& column : query.columns) {
    Column& made = columns.emplace_back(column_of(query, column));
    const bool is_counted = made.role == aggregate::ColumnRole::Aggregate;
    made.adds_up = !is_counted || adds_up(query, column.expression);
    made.of_kernel = is_of_kernel(query, column.expression);
    made.only_grows = only_grows(query, column.expression);
    const bool is_histogram = is_counted && made.type == ColumnType::Histogram &&
                              column.expression.kind == query::ExpressionKind::Aggregate;
    if (is_histogram) made.sum_column = sum_column(query, column.expression);
  }
  if (query.window)
    columns.push_back({.name = std::string(query::kVersionColumn), .adds_up = false});
  return columns;
}

Column column_of(const query::Input& input) {
  return {.name = input.name, .type = column_type(input.type), .unit = unit_of(input.type.unit)};
}

bool has_top(const query::Query& query) {
  return std::any_of(query.aggregates.begin(), query.aggregates.end(), [](const auto& aggregate) {
    return aggregate.function == abi::AggregateFunction::TopK;
  });
}

namespace {

// The names of the bits that are there, and what is left of them as a number: "O_WRONLY|O_CREAT".
std::string names_of_flags(const query::Enumeration& flags, uint64_t value) {
  std::string text;
  uint64_t known = 0;
  const auto add = [&text](std::string_view name) {
    if (!text.empty()) text += '|';
    text += name;
  };
  for (size_t i = 0; i < flags.enumerators.size(); ++i) {
    const auto mask = static_cast<uint64_t>(flags.masks[i]);
    const auto bits = static_cast<uint64_t>(flags.enumerators[i].value);
    const bool is_new = bits == 0 || (known & bits) != bits;
    if ((value & mask) != bits || !is_new) continue;
    add(flags.enumerators[i].name);
    known |= mask;
  }
  if (const uint64_t rest = value & ~known; rest != 0) add(fmt::format("0x{:x}", rest));
  return text.empty() ? "0" : text;
}

}  // namespace

void name_enumerator(const query::Query& query, aggregate::Value& value, const query::Type& type) {
  if (type.enumeration == 0 || std::holds_alternative<std::monostate>(value)) return;
  const uint64_t bits = plan::bits_of(value);
  const query::Enumeration& enumeration = query.enumerations[type.enumeration - 1U];
  if (!enumeration.masks.empty()) {
    const uint64_t size_mask =
        type.size_bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * type.size_bytes)) - 1;
    value = names_of_flags(enumeration, bits & size_mask);
    return;
  }
  const auto& list = enumeration.enumerators;
  const auto found = std::find_if(list.begin(), list.end(), [bits](const query::Enumerator& e) {
    return static_cast<uint64_t>(e.value) == bits;
  });
  if (found != list.end()) {
    value = found->name;
  } else {
    value = static_cast<int64_t>(bits);
  }
}

}  // namespace clew::answer
