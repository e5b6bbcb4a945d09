// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/coder.h"
#include "query/print.h"
#include "query/window.h"

namespace clew::plan {

using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::Query;

namespace {

constexpr int kRewritesMax = 10'000;

using Test = bool (*)(const Expression&);

// `test` for the expression, everything it refers to, and each source's own inputs.
bool holds(const Query& query, const Expression& expression, Test test, Test inner) {
  const auto refers = [&](const Expression& part) {
    if (part.kind == ExpressionKind::Let) {
      return holds(query, query.lets[part.index].expression, inner, inner);
    }
    if (part.kind != ExpressionKind::Input) return true;
    return std::all_of(query.sources.begin(), query.sources.end(), [&](const auto& source) {
      return holds(query, source.inputs[part.index], inner, inner);
    });
  };
  return test(expression) && refers(expression) &&
         std::all_of(
             expression.operands.begin(), expression.operands.end(),
             [&](const Expression& operand) { return holds(query, operand, inner, inner); });
}

bool site_constant_node(const Expression& expression) {
  if (expression.kind != ExpressionKind::Field) return takes_only_fields(expression);
  return expression.field == Field::Function || expression.field == Field::Module ||
         expression.field == Field::Probe;
}

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::Probe:
      return "probe";
    case Tier::Process:
      return "process";
    case Tier::Node:
      return "node";
  }
  return "";
}

std::string print_aggregate(const Query& query, const query::Aggregate& aggregate) {
  const std::string argument =
      aggregate.arguments.empty() ? "" : query::print(aggregate.arguments[0], query);
  return fmt::format("{}({})", name_of(aggregate.function), argument);
}

std::string describe_groups(const Query& query, std::string_view verb) {
  std::string text(verb);
  for (size_t i = 0; i < query.aggregates.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " " : ", ", print_aggregate(query, query.aggregates[i]));
  }
  for (size_t i = 0; i < query.values.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " by " : ", ",
                        query::print(query.values[i].expression, query));
  }
  return text;
}

std::string describe_having(const Query& query) {
  std::string text = "keep rows";
  for (size_t i = 0; i < query.having.size(); ++i) {
    text += (i == 0 ? " where " : " && ") + query::print(query.having[i], query);
  }
  return text;
}

std::string describe_columns(const query::Query& query) {
  std::string text = "columns";
  for (size_t i = 0; i < query.columns.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " " : ", ", query.columns[i].name);
  }
  return text;
}

std::string describe_order(const Query& query) {
  std::string text = "order by";
  for (size_t i = 0; i < query.order.size(); ++i) {
    text += (i == 0 ? " " : ", ") + query::print(query.order[i].expression, query);
    if (query.order[i].descending) text += " descending";
  }
  return text;
}

std::string describe(const Query& query, const Operator& op, std::string_view part) {
  switch (op.kind) {
    case OperatorKind::Filter: {
      const Expression& condition = query.where[op.index];
      const bool is_of_cells = op.tier == Tier::Probe && is_cell_filter(query, condition);
      return fmt::format("filter {}{}", is_of_cells ? "counts by process: " : "",
                         query::print(condition, query));
    }
    case OperatorKind::Select:
      return fmt::format("select {} = {}", query.values[op.index].name,
                         query::print(query.values[op.index].expression, query));
    case OperatorKind::Merge:
      return fmt::format("merge the streams of all probes and {}s", part);
    case OperatorKind::Aggregate:
    case OperatorKind::Group:
      return describe_groups(query, "count");
    case OperatorKind::PartialAggregate:
    case OperatorKind::PartialGroup:
      return describe_groups(query, fmt::format("count per {}:", part));
    case OperatorKind::FinalAggregate:
    case OperatorKind::FinalGroup:
      return "merge the cells of equal keys";
    case OperatorKind::Columns:
      return describe_columns(query);
    case OperatorKind::Having:
      return describe_having(query);
    case OperatorKind::Order:
      return describe_order(query);
    case OperatorKind::Take:
      return fmt::format("take {}", query.take.value_or(0));
  }
  return "";
}

}  // namespace

bool Plan::has(OperatorKind kind) const {
  return std::any_of(operators.begin(), operators.end(),
                     [kind](const Operator& op) { return op.kind == kind; });
}

size_t Plan::merge_position() const {
  const auto merge = std::find_if(operators.begin(), operators.end(), [](const Operator& op) {
    return op.kind == OperatorKind::Merge;
  });
  return static_cast<size_t>(merge - operators.begin());
}

bool Plan::pushed(OperatorKind kind, uint16_t index) const {
  const auto end = operators.begin() + static_cast<ptrdiff_t>(merge_position());
  return std::any_of(operators.begin(), end,
                     [&](const Operator& op) { return op.kind == kind && op.index == index; });
}

std::vector<const Expression*> Plan::program_filters() const {
  std::vector<const Expression*> filters;
  for (size_t i = 0; i < query.where.size(); ++i) {
    const bool is_in_front = pushed(OperatorKind::Filter, static_cast<uint16_t>(i));
    if (is_in_front && all_probes_can(query, query.where[i]) &&
        !is_site_constant(query, query.where[i]))
      filters.push_back(&query.where[i]);
  }
  return filters;
}

bool all_probes_can(const Query& query, const Expression& expression) {
  return holds(query, expression, probe_can, probe_can);
}

bool all_probes_can_store(const Query& query, const Expression& expression) {
  if (is_own_stack(expression)) return true;
  return holds(query, expression, probe_can_store, probe_can);
}

bool takes_only_fields(const Expression& node) {
  switch (node.kind) {
    case ExpressionKind::Load:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
    case ExpressionKind::Value:
    case ExpressionKind::Aggregate:
    case ExpressionKind::JoinColumn:
      return false;
    case ExpressionKind::Call:
      return node.function != query::Function::Sample &&
             node.function != query::Function::Extension;
    case ExpressionKind::Field:
    case ExpressionKind::Integer:
    case ExpressionKind::Float:
    case ExpressionKind::String:
    case ExpressionKind::Input:
    case ExpressionKind::Let:
    case ExpressionKind::Unary:
    case ExpressionKind::Binary:
    case ExpressionKind::Conditional:
    case ExpressionKind::Convert:
    case ExpressionKind::In:
      return true;
  }
  return {};
}

bool is_site_constant(const Query& query, const Expression& expression) {
  return holds(query, expression, site_constant_node, site_constant_node);
}

bool is_process_constant(const Expression& expression) {
  return expression.kind == ExpressionKind::Field &&
         (expression.field == Field::Pid || expression.field == Field::ProcName ||
          expression.field == Field::Host || expression.field == Field::NodeName ||
          query::is_of_owner(expression.field));
}

bool keys_known_before(const Query& query) {
  const bool counts_values =
      std::any_of(query.aggregates.begin(), query.aggregates.end(),
                  [](const auto& a) { return a.function == abi::AggregateFunction::TopK; });
  return query.shape == query::Shape::Groups && !counts_values &&
         std::all_of(query.values.begin(), query.values.end(), [&](const auto& value) {
           return is_process_constant(value.expression) ||
                  is_site_constant(query, value.expression);
         });
}

bool can_group_in_probes(const Plan& plan) {
  const Query& query = plan.query;
  for (size_t i = 0; i < query.where.size(); ++i) {
    if (!plan.pushed(OperatorKind::Filter, static_cast<uint16_t>(i))) return false;
  }
  for (size_t i = 0; i < query.values.size(); ++i) {
    if (!plan.pushed(OperatorKind::Select, static_cast<uint16_t>(i))) return false;
  }
  return std::all_of(query.aggregates.begin(), query.aggregates.end(), [&](const auto& aggregate) {
    return std::all_of(aggregate.arguments.begin(), aggregate.arguments.end(),
                       [&](const Expression& e) { return all_probes_can(query, e); });
  });
}

bool push_first(Plan& plan, OperatorKind kind, const std::function<bool(const Operator&)>& can) {
  std::vector<Operator>& all = plan.operators;
  const auto merge = all.begin() + static_cast<ptrdiff_t>(plan.merge_position());
  const auto found = std::find_if(merge, all.end(),
                                  [&](const Operator& op) { return op.kind == kind && can(op); });
  if (found == all.end()) return false;
  found->tier = Tier::Probe;
  std::rotate(merge, found, found + 1);
  return true;
}

// The threads of a process meet on the process tier, processes at the node.
bool split_first(Plan& plan, const Split& split) {
  std::vector<Operator>& all = plan.operators;
  const auto merge = all.begin() + static_cast<ptrdiff_t>(plan.merge_position());
  const auto found =
      std::find_if(merge, all.end(), [&](const Operator& op) { return op.kind == split.whole; });
  if (found == all.end() || !can_group_in_probes(plan)) return false;
  found->kind = split.rest;
  merge->tier = Tier::Process;
  all.insert(merge, {.kind = split.partial, .tier = Tier::Probe, .index = 0});
  return true;
}

Plan plain(Query query) {
  Plan plan;
  const auto add = [&plan](OperatorKind kind, size_t index = 0) {
    plan.operators.push_back(
        {.kind = kind, .tier = Tier::Node, .index = static_cast<uint16_t>(index)});
  };
  add(OperatorKind::Merge);
  for (size_t i = 0; i < query.where.size(); ++i) {
    add(OperatorKind::Filter, i);
  }
  for (size_t i = 0; i < query.values.size(); ++i) {
    add(OperatorKind::Select, i);
  }
  if (query.shape == query::Shape::Groups) {
    add(query.values.empty() ? OperatorKind::Aggregate : OperatorKind::Group);
  }
  if (!query.having.empty()) add(OperatorKind::Having);
  if (!query.order.empty()) add(OperatorKind::Order);
  if (query.take) add(OperatorKind::Take);
  add(OperatorKind::Columns);
  plan.query = std::move(query);
  return plan;
}

Plan make(Query query) {
  Plan plan = plain(std::move(query));
  for (int i = 0; i < kRewritesMax; ++i) {
    const bool changed = rewrite_filter(plan) || rewrite_select(plan) || rewrite_owners(plan) ||
                         rewrite_group(plan) || rewrite_aggregate(plan);
    if (!changed) break;
  }
  return plan;
}

namespace {

std::string describe(const query::TimeWindow& window) {
  const bool is_said = window.late_ns != query::kLateUsualNs;
  return fmt::format("{}{}, from panes of {}", query::print(window),
                     is_said ? "" : " late " + query::print_duration(window.late_ns),
                     query::print_duration(query::pane_ns(window)));
}

}  // namespace

std::string print(const Plan& plan, std::string_view part) {
  std::string text;
  bool has_windows = !plan.query.window.has_value();
  for (const Operator& op : plan.operators) {
    const bool is_of_rows = op.kind == OperatorKind::Having || op.kind == OperatorKind::Order ||
                            op.kind == OperatorKind::Take || op.kind == OperatorKind::Columns;
    if (is_of_rows && !std::exchange(has_windows, true))
      text += fmt::format("  {:<8} {}\n", name_of(op.tier), describe(*plan.query.window));
    text += fmt::format("  {:<8} {}\n", name_of(op.tier), describe(plan.query, op, part));
  }
  if (plan.query.clustering)
    text += fmt::format("  {:<8} {}\n", name_of(Tier::Node), query::print_clusters(plan.query));
  return text;
}

}  // namespace clew::plan
