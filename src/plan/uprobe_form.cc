// SPDX-License-Identifier: Apache-2.0
#include "plan/uprobe_form.h"

#include <algorithm>

#include "query/at_event.h"

namespace clew::plan {
namespace {

using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::SourceKind;

// In what is asked of every source.
template <typename Predicate>
bool asks_all(const query::Query& query, const Predicate& is_one) {
  return std::any_of(query.lets.begin(), query.lets.end(),
                     [&](const auto& let) { return query::contains(let.expression, is_one); }) ||
         query::any_at_event(query,
                             [&](const Expression& root) { return query::contains(root, is_one); });
}

template <typename Predicate>
bool asks(const query::Query& query, const query::Source& source, const Predicate& is_one) {
  return asks_all(query, is_one) ||
         std::any_of(source.inputs.begin(), source.inputs.end(),
                     [&](const Expression& input) { return query::contains(input, is_one); });
}

bool is_unknown(const Expression& expression) {
  constexpr uint16_t kInRegisters = 6;
  if (expression.kind == ExpressionKind::Call) {
    return expression.function == query::Function::Extension;
  }
  if (expression.kind != ExpressionKind::Field) return false;
  const bool is_argument =
      expression.field == Field::Argument || expression.field == Field::EntryArgument;
  const bool is_value = is_argument || expression.field == Field::ReturnValue;
  return (is_argument && expression.index >= kInRegisters) ||
         (is_value && expression.type.kind == query::TypeKind::Float);
}

bool is_served(SourceKind kind) {
  return kind == SourceKind::Entry || kind == SourceKind::Return || kind == SourceKind::Offset ||
         kind == SourceKind::Line || kind == SourceKind::Usdt;
}

}  // namespace

bool can_be_uprobe(const query::Query& query, const query::Source& source) {
  if (!is_served(source.kind)) return false;
  if (query.including_open && source.kind == SourceKind::Return) return false;
  return !asks(query, source, is_unknown);
}

bool reads_result(const query::Query& query, const query::Source& source) {
  return asks(query, source, [](const Expression& expression) {
    return expression.kind == ExpressionKind::Field && expression.field == Field::ReturnValue;
  });
}

bool reads_elapsed(const query::Query& query, const query::Source& source) {
  return asks(query, source, [](const Expression& expression) {
    return expression.kind == ExpressionKind::Field && expression.field == Field::Elapsed;
  });
}

unsigned arguments_asked(const query::Query& query, const query::Source& source) {
  unsigned count = 0;
  (void)asks(query, source, [&count](const Expression& expression) {
    const bool is_argument =
        expression.kind == ExpressionKind::Field && expression.field == Field::Argument;
    if (is_argument) count = std::max(count, expression.index + 1U);
    return false;
  });
  return count;
}

bool reads_stack(const query::Query& query) {
  return asks_all(query, [](const Expression& expression) {
    return expression.type.kind == query::TypeKind::Stack;
  });
}

bool can_walk_in_processes(const query::Query& query) {
  return !query.including_open &&
         std::all_of(query.sources.begin(), query.sources.end(), [](const query::Source& source) {
           return is_served(source.kind) || source.kind == SourceKind::Exception;
         });
}

bool names_code(const query::Query& query) {
  const auto is_symbol = [](const Expression& expression) {
    return expression.type.kind == query::TypeKind::Symbol;
  };
  return asks_all(query, is_symbol) ||
         std::any_of(query.sources.begin(), query.sources.end(),
                     [&](const query::Source& source) { return asks(query, source, is_symbol); });
}

}  // namespace clew::plan
