// SPDX-License-Identifier: Apache-2.0
// A filter on what is the same for all events of a process, such as its container, needs no event
// at the tracer: all are counted, by process or in the kernel by what the condition asks for, and
// the tracer leaves out the cells that fail it.
#include <algorithm>

#include "plan/kernel_form.h"
#include "plan/plan.h"
#include "query/walk.h"

namespace clew::plan {

using query::Expression;
using query::ExpressionKind;

namespace {

bool may_ask_of_process(const Expression& node) {
  if (node.kind == ExpressionKind::Field) return is_process_constant(node);
  const bool is_elsewhere = node.kind == ExpressionKind::Input || node.kind == ExpressionKind::Let;
  return !is_elsewhere && takes_only_fields(node);
}

bool asks_of_process(const Expression& condition) {
  bool is_all = true;
  bool is_any = false;
  query::visit(condition, [&](const Expression& node) {
    is_all = is_all && may_ask_of_process(node);
    is_any = is_any || node.kind == ExpressionKind::Field;
  });
  return is_all && is_any;
}

// Whether all that is counted is there for it.
bool can_group_without(const Plan& plan) {
  const query::Query& query = plan.query;
  if (query.shape != query::Shape::Groups || query.for_events || !query.joins.empty()) return false;
  for (size_t i = 0; i < query.where.size(); ++i) {
    const bool is_late = !plan.pushed(OperatorKind::Filter, static_cast<uint16_t>(i));
    if (is_late && !asks_of_process(query.where[i])) return false;
  }
  Plan rest = plan;
  rest.query.where.clear();
  return can_group_in_probes(rest);
}

}  // namespace

bool rewrite_owners(Plan& plan) {
  return can_group_without(plan) &&
         push_first(plan, OperatorKind::Filter, [&plan](const Operator& op) {
           return asks_of_process(plan.query.where[op.index]);
         });
}

std::vector<const Expression*> cell_filters(const Plan& plan) {
  std::vector<const Expression*> filters;
  const query::Query& query = plan.query;
  for (size_t i = 0; i < query.where.size(); ++i) {
    const Expression& condition = query.where[i];
    if (plan.pushed(OperatorKind::Filter, static_cast<uint16_t>(i)) &&
        is_cell_filter(query, condition))
      filters.push_back(&condition);
  }
  return filters;
}

bool is_cell_filter(const query::Query& query, const Expression& condition) {
  return !all_probes_can(query, condition) && !is_site_constant(query, condition);
}

std::vector<Expression> owner_keys(const Plan& plan) {
  std::vector<Expression> keys;
  for (const Expression* const filter : cell_filters(plan)) {
    query::visit(*filter, [&keys](const Expression& node) {
      if (node.kind != ExpressionKind::Field || !query::is_of_owner(node.field)) return;
      const bool is_known = std::any_of(keys.begin(), keys.end(), [&node](const Expression& key) {
        return word_of_owner(key.field) == word_of_owner(node.field);
      });
      if (!is_known) keys.push_back(node);
    });
  }
  return keys;
}

}  // namespace clew::plan
