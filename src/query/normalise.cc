// SPDX-License-Identifier: Apache-2.0
#include "query/normalise.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "query/arithmetic.h"
#include "query/at_event.h"
#include "query/fields.h"
#include "query/unsupported.h"
#include "query/window.h"

namespace clew::query {
namespace {

unsigned depth_of(const Expression& expression) {
  unsigned depth = 0;
  for (const Expression& operand : expression.operands) {
    depth = std::max(depth, depth_of(operand));
  }
  return depth + 1;
}

class Normaliser {
 public:
  Normaliser(Build& build, Analysed analysed) : build_(build), from_(std::move(analysed)) {}

  Expected<Query> run() {
    Query& query = build_.query;
    query.shape = from_.is_grouped ? Shape::Groups : Shape::Events;
    for (const NamedExpression& let : query.lets) {
      let_has_tracer_part_.push_back(has_tracer_part(let.expression));
    }
    take_streams();
    take_keys();
    for (NamedExpression& column : from_.columns) {
      wanted_name_ = column.name;
      Expression expression = CLEW_TRY(in_tracer(column.expression));
      query.columns.push_back({.name = column.name, .expression = std::move(expression)});
    }
    wanted_name_ = "order";
    for (const Expression& condition : from_.having) {
      query.having.push_back(CLEW_TRY(in_tracer(condition)));
    }
    for (const OrderBy& by : from_.order) {
      Expression expression = CLEW_TRY(in_tracer(by.expression));
      query.order.push_back({.expression = std::move(expression), .descending = by.descending});
    }
    drop_unused_aggregates();
    CLEW_TRY(inline_lets());
    CLEW_TRY(check_windows());
    CLEW_TRY(check_depth());
    CLEW_TRY(check_join_keys());
    CLEW_TRY(check_keys());
    return std::move(query);
  }

 private:
  void take_streams() {
    Query& query = build_.query;
    for (size_t i = 0; i < build_.streams.size(); ++i) {
      std::vector<Source>& sources = i == 0 ? query.sources : query.joins[i - 1].sources;
      std::vector<Input>& inputs = i == 0 ? query.inputs : query.joins[i - 1].inputs;
      for (ResolvedSource& resolved : build_.streams[i].sources) {
        sources.push_back(std::move(resolved.source));
      }
      inputs = std::move(build_.streams[i].inputs);
    }
  }

  [[nodiscard]] Expected<void> check_join_keys() const {
    for (const Join& join : build_.query.joins) {
      if (!join.within) continue;
      for (const std::vector<Expression>* keys : {&join.within->joined, &join.within->other}) {
        for (const Expression& key : *keys)
          CLEW_TRY(check_depth(key));
      }
    }
    return {};
  }

  Expected<void> charge(const Expression& expression) {
    const size_t nodes = count_nodes(expression);
    if (nodes > build_.limits.nodes) {
      return build_.report.fail(expression.span,
                                fmt::format("this query has more than {} operations", kNodesMax));
    }
    build_.limits.nodes -= nodes;
    return {};
  }

  // --- what runs in the tracer -----------------------------------------------------------------

  // Formatting around a key is left to the columns: grouping by hex(x) is grouping by x.
  void take_keys() {
    for (NamedExpression& key : from_.keys) {
      bool strips = true;
      while (strips) {
        const bool is_shown =
            key.expression.kind == ExpressionKind::Call && is_format(key.expression.function);
        const bool is_let_of_format =
            key.expression.kind == ExpressionKind::Let && is_tracer_let(key.expression);
        strips = is_shown || is_let_of_format;
        if (!strips) break;
        Expression inner = is_shown ? key.expression.operands[0]
                                    : build_.query.lets[key.expression.index].expression;
        key.expression = std::move(inner);
      }
      bool is_known = false;
      for (const NamedExpression& other : build_.query.values) {
        is_known = is_known || other.expression == key.expression;
      }
      if (is_known) continue;
      add_value(key.name, key.expression);
    }
  }

  [[nodiscard]] bool is_tracer_let(const Expression& let) const {
    return let_has_tracer_part_[let.index];
  }

  [[nodiscard]] bool has_tracer_part(const Expression& expression) const {
    return contains(expression, [this](const Expression& node) {
      return runs_in_tracer_only(node) || (node.kind == ExpressionKind::Let && is_tracer_let(node));
    });
  }

  uint16_t add_value(const std::string& name, Expression expression) {
    std::vector<NamedExpression>& values = build_.query.values;
    std::string free = name;
    for (unsigned i = 2; has_value_named(free); ++i) {
      free = fmt::format("{}_{}", name, i);
    }
    values.push_back({.name = std::move(free), .expression = std::move(expression)});
    return static_cast<uint16_t>(values.size() - 1);
  }

  [[nodiscard]] bool has_value_named(const std::string& name) const {
    const auto& values = build_.query.values;
    return std::any_of(values.begin(), values.end(),
                       [&](const NamedExpression& value) { return value.name == name; });
  }

  static Expression value_node(size_t index, const Expression& of) {
    Expression result;
    result.kind = ExpressionKind::Value;
    result.type = of.type;
    result.index = static_cast<uint16_t>(index);
    result.span = of.span;
    return result;
  }

  // The expression over Value and Aggregate nodes.
  Expected<Expression> in_tracer(const Expression& expression) {
    const bool is_of_window = expression.kind == ExpressionKind::Value;
    if (expression.kind == ExpressionKind::Aggregate || is_constant(expression) || is_of_window)
      return expression;
    for (size_t i = 0; i < build_.query.values.size(); ++i) {
      if (same_value(build_.query.values[i].expression, expression)) {
        return value_node(i, expression);
      }
    }
    const bool is_group = build_.query.shape == Shape::Groups;
    const bool is_tracer_part = is_group ? !is_leaf(expression) : has_tracer_part(expression);
    if (expression.kind == ExpressionKind::Let && (is_group || is_tracer_part)) {
      const Expression meaning = build_.query.lets[expression.index].expression;
      CLEW_TRY(charge(meaning));
      return in_tracer(meaning);
    }
    if (is_tracer_part && can_run_in_tracer(expression)) return rebuilt(expression);
    if (!is_group && build_.query.values.size() == kColumnsMax) {
      return build_.report.fail(
          expression.span,
          fmt::format("an answer needs at most {} values of an event", kColumnsMax));
    }
    if (!is_group) return value_node(add_value(wanted_name_, expression), expression);
    return build_.report.fail(expression.span, fmt::format("{} is neither a key of the group nor "
                                                           "inside an aggregate",
                                                           described(expression)));
  }

  // Reads of memory and sampling happen at the event only.
  static bool can_run_in_tracer(const Expression& expression) {
    switch (expression.kind) {
      case ExpressionKind::Unary:
      case ExpressionKind::Binary:
      case ExpressionKind::Conditional:
      case ExpressionKind::Convert:
      case ExpressionKind::In:
        return true;
      case ExpressionKind::Call:
        return expression.function != Function::Sample &&
               expression.function != Function::Extension;
      case ExpressionKind::Integer:
      case ExpressionKind::Float:
      case ExpressionKind::String:
      case ExpressionKind::Field:
      case ExpressionKind::Input:
      case ExpressionKind::Let:
      case ExpressionKind::Value:
      case ExpressionKind::Aggregate:
      case ExpressionKind::JoinColumn:
      case ExpressionKind::Load:
      case ExpressionKind::ReadString:
      case ExpressionKind::ReadBytes:
        return false;
    }
    return false;
  }

  Expected<Expression> rebuilt(Expression expression) {
    for (Expression& operand : expression.operands) {
      operand = CLEW_TRY(in_tracer(operand));
    }
    return expression;
  }

  // Whether a key is this expression, seen through lets. Lets can double what there is to compare,
  // so it gives up in time; then the two count as different.
  [[nodiscard]] bool same_value(const Expression& key, const Expression& expression) {
    if (key == expression) return true;
    if (comparisons_left_ == 0) return false;
    --comparisons_left_;
    if (key.kind == ExpressionKind::Let) {
      return same_value(build_.query.lets[key.index].expression, expression);
    }
    if (expression.kind == ExpressionKind::Let) {
      return same_value(key, build_.query.lets[expression.index].expression);
    }
    bool is_same = key.kind == expression.kind && !key.operands.empty() &&
                   key.operands.size() == expression.operands.size();
    if (!is_same) return false;
    Expression a = key;
    Expression b = expression;
    a.operands.clear();
    b.operands.clear();
    is_same = a == b;
    for (size_t i = 0; is_same && i < key.operands.size(); ++i) {
      is_same = same_value(key.operands[i], expression.operands[i]);
    }
    return is_same;
  }

  static std::string described(const Expression& expression) {
    if (expression.kind != ExpressionKind::Field) return "this";
    const bool is_numbered = expression.field == Field::Argument;
    const std::string number = is_numbered ? std::to_string(expression.index) : "";
    return fmt::format("'{}{}'", info(expression.field).name, number);
  }

  // An aggregate that was replaced while the query was read, such as one of a dropped column.
  void drop_unused_aggregates() {
    std::vector<bool> used(build_.query.aggregates.size(), false);
    for_each_in_tracer([&](Expression& node) {
      if (node.kind == ExpressionKind::Aggregate) used[node.index] = true;
    });
    if (build_.query.window && build_.query.window->kind == WindowKind::Session)
      used[kFirstTimeAggregate] = used[kLastTimeAggregate] = true;
    std::vector<uint16_t> position(used.size(), 0);
    std::vector<Aggregate> kept;
    for (size_t i = 0; i < used.size(); ++i) {
      position[i] = static_cast<uint16_t>(kept.size());
      if (used[i]) kept.push_back(std::move(build_.query.aggregates[i]));
    }
    build_.query.aggregates = std::move(kept);
    for_each_in_tracer([&](Expression& node) {
      if (node.kind == ExpressionKind::Aggregate) node.index = position[node.index];
    });
  }

  template <typename Visitor>
  void for_each_in_tracer(const Visitor& visitor) {
    for (NamedExpression& column : build_.query.columns)
      visit(column.expression, visitor);
    for (Expression& condition : build_.query.having)
      visit(condition, visitor);
    for (OrderBy& by : build_.query.order)
      visit(by.expression, visitor);
  }

  // --- what runs at the event ------------------------------------------------------------------

  // Keeps the lets that are used at least twice and are worth a name; the others vanish.
  Expected<void> inline_lets() {
    std::vector<NamedExpression> lets;
    std::swap(lets, build_.query.lets);
    std::vector<size_t> uses(lets.size(), 0);
    const auto count = [&](Expression& node) {
      if (node.kind == ExpressionKind::Let) ++uses[node.index];
    };
    visit_at_event(build_.query, [&](Expression& root) { visit(root, count); });
    for (size_t i = lets.size(); i > 0; --i) {
      if (uses[i - 1] > 0) visit(lets[i - 1].expression, count);
    }
    std::vector<Expression> meaning;
    for (size_t i = 0; i < lets.size(); ++i) {
      if (uses[i] == 0) {
        meaning.emplace_back();
        continue;
      }
      Expression expression = std::move(lets[i].expression);
      CLEW_TRY(replace(expression, meaning));
      const bool stays = uses[i] > 1 && !is_leaf(expression) && !is_long_text(expression);
      if (!stays) {
        meaning.push_back(std::move(expression));
        continue;
      }
      Expression reference;
      reference.kind = ExpressionKind::Let;
      reference.type = expression.type;
      reference.index = static_cast<uint16_t>(build_.query.lets.size());
      meaning.push_back(std::move(reference));
      build_.query.lets.push_back({.name = lets[i].name, .expression = std::move(expression)});
    }
    Expected<void> result;
    visit_at_event(build_.query, [&](Expression& root) {
      if (result) result = replace(root, meaning);
    });
    return result;
  }

  // Text that is not kept in the probe's little scratch memory, but read where it is used.
  [[nodiscard]] bool is_long_text(const Expression& expression) const {
    const bool is_group = build_.query.shape == Shape::Groups;
    const uint16_t kept_max = is_group ? kKeyStringMaxBytes : kStringDefaultBytes;
    return is_read(expression) && !changes_state(expression) &&
           expression.type.capacity_bytes > kept_max;
  }

  static bool is_read(const Expression& text) {
    if (text.kind != ExpressionKind::Conditional) return text.kind == ExpressionKind::ReadString;
    return is_read(text.operands[1]) || is_read(text.operands[2]);
  }

  // Whether it is another value when it is computed again.
  static bool changes_state(const Expression& expression) {
    return contains(expression, [](const Expression& node) {
      return node.kind == ExpressionKind::Call &&
             (node.function == Function::Sample || node.function == Function::Extension);
    });
  }

  Expected<void> replace(Expression& expression, const std::vector<Expression>& meaning) {
    if (expression.kind == ExpressionKind::Let) {
      const Span span = expression.span;
      expression = meaning[expression.index];
      if (expression.kind == ExpressionKind::Let) expression.span = span;
      CLEW_TRY(charge(expression));
      return check_depth(expression);
    }
    for (Expression& operand : expression.operands) {
      CLEW_TRY(replace(operand, meaning));
    }
    return check_depth(expression);
  }

  // At its event, nobody knows the windows of an event yet.
  [[nodiscard]] Expected<void> check_windows() {
    const Expression* found = nullptr;
    visit_at_event(build_.query, [&](const Expression& root) {
      if (uses_window(root)) found = &root;
    });
    for (const NamedExpression& let : build_.query.lets) {
      if (uses_window(let.expression)) found = &let.expression;
    }
    if (found == nullptr) return {};
    return build_.report.fail(found->span,
                              "only rows know their window: it can stand in 'select', 'orderby', "
                              "and in a 'where' behind the group");
  }

  [[nodiscard]] Expected<void> check_depth(const Expression& expression) const {
    if (depth_of(expression) <= kExpressionDepthMax) return {};
    return build_.report.fail(
        expression.span, fmt::format("this is nested deeper than {} levels", kExpressionDepthMax));
  }

  Expected<void> check_depth() {
    Expected<void> result;
    const auto check = [&](Expression& root) {
      if (result) result = check_depth(root);
    };
    visit_at_event(build_.query, check);
    for_each_in_tracer(check);
    return result;
  }

  [[nodiscard]] Expected<void> check_keys() const {
    if (build_.query.shape != Shape::Groups) return {};
    for (const NamedExpression& value : build_.query.values)
      CLEW_TRY(check_key(value.expression));
    for (const Aggregate& aggregate : build_.query.aggregates) {
      for (const Expression& argument : aggregate.arguments)
        CLEW_TRY(check_key(argument));
    }
    return {};
  }

  [[nodiscard]] Expected<void> check_key(const Expression& expression) const {
    const bool is_stack = expression.type.kind == TypeKind::Stack;
    if (is_stack || expression.type.capacity_bytes <= kKeyStringMaxBytes) return {};
    return build_.report.fail(
        expression.span,
        fmt::format("text that is grouped by or counted has at most {} bytes, this has up to {}",
                    kKeyStringMaxBytes, expression.type.capacity_bytes));
  }

  Build& build_;
  Analysed from_;
  std::string wanted_name_;  // Of a value that the next column needs.
  std::vector<bool> let_has_tracer_part_;
  size_t comparisons_left_ = kNodesMax;
};

}  // namespace

Expected<Query> normalise(Build& build, Analysed analysed) {
  return Normaliser(build, std::move(analysed)).run();
}

Expected<Query> analyse_query(const SyntaxQuery& syntax, std::span<const SyntaxDefinition> visible,
                              const Reporter& report, const Environment& environment,
                              Limits& limits) {
  Build build(report, environment, limits);
  // `period` is the interval, wherever `every` stands.
  for (const Step& step : syntax.steps) {
    if (step.kind == StepKind::Every) build.query.every_ns = step.number;
  }
  Analysed analysed = CLEW_TRY(Analyser(build, visible).run(syntax));
  std::vector<Query> clustered = std::move(analysed.clustered);
  Query query = CLEW_TRY(normalise(build, std::move(analysed)));
  if (clustered.empty()) return query;
  return with_clusters(std::move(clustered[0]), std::move(query), report);
}

}  // namespace clew::query
