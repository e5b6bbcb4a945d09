// SPDX-License-Identifier: Apache-2.0
#include "query/analyse.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "query/arithmetic.h"
#include "query/fields.h"
#include "query/normalise.h"
#include "query/parser.h"
#include "query/resolve_source.h"
#include "query/token.h"
#include "query/window.h"

namespace clew::query {
namespace {

// The union of two bounds of the session is the nearer one.
void set_nearer(std::optional<uint64_t>& bound, uint64_t value) {
  bound = bound ? std::min(*bound, value) : value;
}

}  // namespace

Expected<Analysed> Analyser::run(const SyntaxQuery& query) {
  CLEW_TRY(constants());
  CLEW_TRY(begin(query));
  CLEW_TRY(steps(query));
  CLEW_TRY(check_cause());
  CLEW_TRY(check_window_used());
  CLEW_TRY(finish());
  return std::move(result_);
}

// var limit = 100;
Expected<void> Analyser::constants() {
  for (const SyntaxDefinition& definition : visible_) {
    if (definition.expression.empty()) continue;
    Expression value = CLEW_TRY(evaluator_.scalar(definition.expression[0]));
    if (!is_constant(value)) {
      return build_.report.fail(definition.expression[0].span, "expected a constant or a query");
    }
    scope_.push_back({.name = definition.name, .value = scalar_value(std::move(value))});
  }
  return {};
}

// --- sources -------------------------------------------------------------------------------------

Expected<void> Analyser::begin(const SyntaxQuery& query) {
  if (CLEW_TRY(begin_with_query(query))) return {};
  const std::optional<SyntaxOutstanding> outstanding = CLEW_TRY(outstanding_of(query));
  row_span_ = query.sources[0].span;
  CLEW_TRY(add_stream(query.name, outstanding ? outstanding->opened : query.sources));
  Value event = value_of_kind(Value::Kind::Event);
  if (!query.name.empty()) {
    scope_.push_back({.name = query.name, .value = event});
    // Pivot Tracing's Q9 calls the event of `from` so.
    if (query.name != "end") scope_.insert(scope_.begin(), {.name = "end", .value = event});
  }
  row_ = std::move(event);
  return outstanding ? add_end(query, *outstanding) : Expected<void>{};
}

// from x in NAME, from x in (query): the steps of that query come first.
Expected<bool> Analyser::begin_with_query(const SyntaxQuery& query) {
  const SyntaxSource& source = query.sources[0];
  const SyntaxDefinition* definition = source.is_call ? nullptr : find_definition(source.name);
  const SyntaxQuery* inner = source.query.empty() ? nullptr : source.query.data();
  if (definition != nullptr && !definition->query.empty()) inner = definition->query.data();
  for (const SyntaxSource& other : query.sources) {
    const bool is_query =
        !other.query.empty() || (!other.is_call && find_definition(other.name) != nullptr);
    if (is_query && query.sources.size() > 1) {
      return build_.report.fail(other.span, "a query cannot be in a union with other sources");
    }
  }
  if (!source.clusters.empty()) {
    CLEW_TRY(begin_with_clusters(source));
    if (!query.name.empty()) scope_.push_back({.name = query.name, .value = row_});
    return true;
  }
  if (definition != nullptr && inner == nullptr) {
    return build_.report.fail(source.span,
                              fmt::format("'{}' is a constant, not a query", definition->name));
  }
  if (inner == nullptr) return false;
  const Names before = scope_;
  const std::span<const SyntaxDefinition> visible = visible_;
  // A query can name those before it, so no query can name itself.
  if (definition != nullptr) {
    visible_ = visible_.first(static_cast<size_t>(definition - visible_.data()));
  }
  CLEW_TRY(begin(*inner));
  CLEW_TRY(steps(*inner));
  visible_ = visible;
  scope_ = before;
  if (!query.name.empty()) scope_.push_back({.name = query.name, .value = row_});
  return true;
}

// --- steps ---------------------------------------------------------------------------------------

Expected<void> Analyser::steps(const SyntaxQuery& query) {
  for (const Step& each : query.steps) {
    if (build_.limits.steps == 0) {
      return build_.report.fail(
          each.span, fmt::format("this query has more than {} steps", kAnalysedStepsMax));
    }
    --build_.limits.steps;
    if (each.parameter.empty()) {
      CLEW_TRY(step(each));
    } else {
      CLEW_TRY(in_lambda(each));
    }
  }
  return {};
}

// A step of a chain sees its parameter, which is the row, and nothing of the steps before.
Expected<void> Analyser::in_lambda(const Step& each) {
  Names outer = scope_;
  scope_.push_back({.name = each.parameter, .value = row_});
  CLEW_TRY(step(each));
  scope_ = std::move(outer);
  return {};
}

Expected<void> Analyser::step(const Step& each) {
  switch (each.kind) {
    case StepKind::Where:
      return where(each);
    case StepKind::Let:
      return let(each);
    case StepKind::Group:
      return group(each);
    case StepKind::GroupBy:
      return group_by(each);
    case StepKind::Select:
      return select(each);
    case StepKind::OrderBy:
      return order(each);
    case StepKind::Take:
    case StepKind::Every:
    case StepKind::For:
    case StepKind::ForEvents:
      return window(each);
    case StepKind::Window:
      CLEW_TRY(check_outstanding(each, ", and not of a time"));
      return time_window(each);
    case StepKind::IncludingOpen:
      build_.query.including_open = true;
      return {};
    case StepKind::Join:
      return join(each);
    case StepKind::WithCause:
      return with_cause(each);
    case StepKind::From:
      return build_.report.fail(each.span, "a second 'from' is not part of this version yet");
    case StepKind::Distinct:
      return distinct(each);
    case StepKind::Aggregate:
      return aggregate_chain(each);
  }
  return {};
}

// take and orderby are about rows of the answer; what changes the rows must come before.
Expected<void> Analyser::check_before_order(const Step& step, std::string_view what) const {
  const bool is_late = build_.query.take.has_value() || !result_.order.empty();
  if (!is_late) return {};
  return build_.report.fail(
      step.span,
      fmt::format("{} behind 'take' or 'orderby' is not part of this version yet; put it "
                  "before them",
                  what));
}

void Analyser::set_row(Value row) {
  row_ = std::move(row);
  has_row_ = true;
}

// --- where ---------------------------------------------------------------------------------------

Expected<void> Analyser::where(const Step& step) {
  if (build_.query.take) CLEW_TRY(check_before_order(step, "'where'"));
  return where_conjunct(step.items[0].expression);
}

Expected<void> Analyser::where_conjunct(const SyntaxExpression& syntax) {
  const bool is_and =
      syntax.kind == SyntaxKind::Binary && syntax.binary == BinaryOperator::LogicalAnd;
  if (is_and) {
    CLEW_TRY(where_conjunct(syntax.kids[0]));
    return where_conjunct(syntax.kids[1]);
  }
  if (CLEW_TRY(take_deadline(syntax))) return {};
  evaluator_.allow_aggregates(result_.is_grouped);
  Expression condition = CLEW_TRY(evaluator_.condition(syntax));
  evaluator_.allow_aggregates(false);
  if (condition.kind == ExpressionKind::Integer && condition.integer != 0) return {};
  if (result_.is_grouped) {
    result_.having.push_back(std::move(condition));
  } else {
    build_.query.where.push_back(std::move(condition));
  }
  return {};
}

// e.time < Now.AddMinutes(5) bounds the session.
Expected<bool> Analyser::take_deadline(const SyntaxExpression& syntax) {
  if (syntax.kind != SyntaxKind::Binary) return false;
  const BinaryOperator op = syntax.binary;
  const bool is_less = op == BinaryOperator::Less || op == BinaryOperator::LessEqual;
  const bool is_more = op == BinaryOperator::Greater || op == BinaryOperator::GreaterEqual;
  if (!is_less && !is_more) return false;
  const SyntaxExpression& earlier = syntax.kids[is_less ? 0 : 1];
  const SyntaxExpression& later = syntax.kids[is_less ? 1 : 0];
  const auto names_now = [](const SyntaxExpression& side) {
    const SyntaxExpression* root = &side;
    while (!root->kids.empty())
      root = &root->kids[0];
    return root->kind == SyntaxKind::Name && root->text == "Now";
  };
  if (names_now(earlier)) {
    const Value bound = CLEW_TRY(evaluator_.evaluate(earlier));
    if (bound.kind != Value::Kind::Deadline) return false;
    return build_.report.fail(syntax.span,
                              "a session starts at once; only its end can be given, by "
                              "'e.time < Now.AddMinutes(5)'");
  }
  if (!names_now(later)) return false;
  const Value bound = CLEW_TRY(evaluator_.evaluate(later));
  if (bound.kind != Value::Kind::Deadline) return false;
  const Expression time = CLEW_TRY(evaluator_.scalar(earlier));
  if (time.kind != ExpressionKind::Field || time.field != Field::Time) {
    return build_.report.fail(earlier.span, "only the time of an event is compared with Now");
  }
  if (bound.deadline_ns == 0) {
    return build_.report.fail(later.span,
                              "this session ends as it starts; add to Now, as in "
                              "Now.AddMinutes(5)");
  }
  set_nearer(build_.query.for_ns, static_cast<uint64_t>(bound.deadline_ns));
  return true;
}

// --- let and select ------------------------------------------------------------------------------

// A name that no other let and no event has, and that reads back as a name.
std::string Analyser::free_name(std::string_view wanted) const {
  constexpr std::array<std::string_view, 9> kReserved = {"e",   "new", "in",   "like", "not",
                                                         "and", "or",  "null", "end"};
  std::string base;
  for (const char c : wanted) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_part = std::isalnum(byte) != 0 || c == '_';
    base += is_part ? c : '_';
  }
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) != 0)
    base = fmt::format("_{}", base);
  const auto is_taken = [&](const std::string& name) {
    bool taken = is_clause_word(name) || is_type_word(name);
    for (const std::string_view reserved : kReserved) {
      taken = taken || same_word(reserved, name);
    }
    for (const NamedExpression& let : build_.query.lets) {
      taken = taken || same_word(let.name, name);
    }
    for (const Stream& stream : build_.streams) {
      taken = taken || same_word(stream.name, name);
    }
    for (const Join& join : build_.query.joins) {
      taken = taken || same_word(join.name, name);
    }
    return taken;
  };
  std::string name = base;
  for (unsigned i = 2; is_taken(name); ++i) {
    name = fmt::format("{}_{}", base, i);
  }
  return name;
}

// An expression over the event that gets a name is computed once: it becomes a let.
Value Analyser::shared(Value value, const std::string& name) {
  if (value.kind == Value::Kind::Record) {
    for (NamedValue& member : value.members) {
      member.value = shared(std::move(member.value), member.name);
    }
    return value;
  }
  const bool is_event_level = !result_.is_grouped && !has_aggregate(value.expression);
  if (value.kind != Value::Kind::Scalar || !is_event_level || is_leaf(value.expression)) {
    return value;
  }
  Expression reference;
  reference.kind = ExpressionKind::Let;
  reference.type = value.expression.type;
  reference.span = value.expression.span;
  reference.index = static_cast<uint16_t>(build_.query.lets.size());
  build_.query.lets.push_back({.name = free_name(name), .expression = std::move(value.expression)});
  value.expression = std::move(reference);
  return value;
}

Expected<void> Analyser::let(const Step& step) {
  for (const NamedValue& other : scope_) {
    if (other.name != step.name || step.name == "end") continue;
    return build_.report.fail(step.name_span, fmt::format("the name '{}' is taken", step.name));
  }
  evaluator_.allow_aggregates(result_.is_grouped);
  Value value = CLEW_TRY(evaluator_.evaluate(step.items[0].expression));
  evaluator_.allow_aggregates(false);
  if (value.kind == Value::Kind::Place) {
    // Text becomes a value; a struct stays a place, whose members are read at their use.
    Expected<Expression> text = evaluator_.to_scalar(value, step.items[0].expression.span);
    if (text) value = scalar_value(*std::move(text));
  }
  scope_.push_back({.name = step.name, .value = shared(std::move(value), step.name)});
  return {};
}

Expected<void> Analyser::select(const Step& step) {
  const size_t aggregates_before = build_.query.aggregates.size();
  evaluator_.allow_aggregates(true);
  Value row = CLEW_TRY(projected(step));
  evaluator_.allow_aggregates(false);
  if (build_.query.aggregates.size() > aggregates_before && !result_.is_grouped) {
    CLEW_TRY(check_before_order(step, "an aggregate"));
    CLEW_TRY(group_by_row(row, step.span));
    result_.is_grouped = true;
  }
  row_span_ = step.span;
  set_row(shared(std::move(row), row_name_));
  if (row_.kind != Value::Kind::Record || !step.parameter.empty()) return {};
  // In clauses, `orderby` and `where` can use the columns' names; other names come first.
  Names names = row_.members;
  names.insert(names.end(), scope_.begin(), scope_.end());
  scope_ = std::move(names);
  return {};
}

// `select job.id, avg(x)` without a group: what is no aggregate is the key, as in Pivot Tracing.
Expected<void> Analyser::group_by_row(const Value& row, Span span) {
  if (row.kind != Value::Kind::Record) return {};
  for (const NamedValue& member : row.members) {
    const bool is_constant_column = is_constant(member.value.expression);
    const bool is_nested = member.value.kind == Value::Kind::Record;
    if (is_nested) CLEW_TRY(group_by_row(member.value, span));
    const bool is_of_rows =
        has_aggregate(member.value.expression) || uses_window(member.value.expression);
    if (is_nested || is_constant_column || is_of_rows) continue;
    CLEW_TRY(add_key(member.name, member.value, span));
  }
  return {};
}

// One item without a name is the row itself; else the row is a record of the items.
Expected<Value> Analyser::projected(const Step& step) {
  const SyntaxItem& first = step.items[0];
  if (step.items.size() == 1 && first.name.empty()) {
    Value only = CLEW_TRY(evaluator_.evaluate(first.expression));
    const bool is_whole = only.kind == Value::Kind::Record || only.kind == Value::Kind::Event ||
                          only.kind == Value::Kind::Group;
    row_name_ = derived_name(first.expression, build_.report.text().text);
    if (is_whole || !step.parameter.empty()) return only;
  }
  Value record = value_of_kind(Value::Kind::Record);
  for (const SyntaxItem& item : step.items) {
    std::string name = item.name;
    if (name.empty()) name = derived_name(item.expression, build_.report.text().text);
    Value value = CLEW_TRY(evaluator_.evaluate(item.expression));
    const Value* taken = find_member(record.members, name);
    if (taken != nullptr && !item.name.empty()) {
      return build_.report.fail(item.name_span, fmt::format("two columns are named '{}'", name));
    }
    // st.host, dnop.host: the second one is called as it is written.
    if (taken != nullptr) {
      const Span written = item.expression.span;
      name = build_.report.text().text.substr(written.begin, written.end - written.begin);
    }
    if (find_member(record.members, name) != nullptr) {
      return build_.report.fail(item.expression.span,
                                fmt::format("two columns are named '{}'", name));
    }
    record.members.push_back({.name = std::move(name), .value = std::move(value)});
  }
  return record;
}

// --- order, windows ------------------------------------------------------------------------------

Expected<void> Analyser::order(const Step& step) {
  evaluator_.allow_aggregates(result_.is_grouped);
  for (const SyntaxItem& item : step.items) {
    Expression by = CLEW_TRY(evaluator_.scalar(item.expression));
    const bool is_histogram = by.kind == ExpressionKind::Aggregate &&
                              is_histogram_kind(build_.query.aggregates[by.index].function);
    if (is_histogram || by.type.kind == TypeKind::Stack) {
      return build_.report.fail(item.expression.span, "rows cannot be ordered by this");
    }
    result_.order.push_back({.expression = std::move(by), .descending = item.descending});
  }
  evaluator_.allow_aggregates(false);
  return {};
}

Expected<void> Analyser::window(const Step& step) {
  if (step.kind == StepKind::Take) {
    const uint64_t before = build_.query.take.value_or(step.number);
    build_.query.take = std::min(before, step.number);
    return {};
  }
  if (step.kind == StepKind::For) {
    set_nearer(build_.query.for_ns, step.number);
    return {};
  }
  const bool is_every = step.kind == StepKind::Every;
  if (!is_every) CLEW_TRY(check_outstanding(step, "; its end is a time, as in 'for 10s'"));
  std::optional<uint64_t>& bound = is_every ? build_.query.every_ns : build_.query.for_events;
  if (bound && !(is_every && *bound == step.number)) {
    return build_.report.fail(step.span, "this is given twice");
  }
  bound = step.number;
  return {};
}

// --- the end -------------------------------------------------------------------------------------

Expected<void> Analyser::distinct(const Step& step) {
  CLEW_TRY(check_before_order(step, "'Distinct'"));
  if (result_.is_grouped) {
    return build_.report.fail(step.span, "'Distinct' of groups is not part of this version yet");
  }
  if (row_.kind == Value::Kind::Event) {
    return build_.report.fail(step.span, "every event is distinct; select some fields before");
  }
  result_.is_grouped = true;
  return add_key("value", row_, step.span);
}

// A record within a record becomes columns key.pid, key.cpu, …
Expected<void> Analyser::add_columns(const std::string& name, const Value& value) {
  const Span written = value.expression.span;
  const Span span = written.end > 0 ? written : row_span_;
  if (value.kind == Value::Kind::Record) {
    for (const NamedValue& member : value.members) {
      const std::string path = name.empty() ? member.name : fmt::format("{}.{}", name, member.name);
      CLEW_TRY(add_columns(path, member.value));
    }
    return {};
  }
  if (value.kind == Value::Kind::Event) {
    return add_columns(name, CLEW_TRY(evaluator_.default_columns(value.stream, row_span_)));
  }
  Expression expression = CLEW_TRY(evaluator_.to_scalar(value, span));
  if (result_.columns.size() == kColumnsMax) {
    return build_.report.fail(row_span_,
                              fmt::format("an answer has at most {} columns", kColumnsMax));
  }
  // Of windows, each row tells how often it was given.
  if (build_.query.window && name == kVersionColumn)
    return build_.report.fail(row_span_, "rows of windows have a column 'version' of their own");
  for (const NamedExpression& other : result_.columns) {
    if (other.name != name) continue;
    return build_.report.fail(row_span_, fmt::format("two columns are named '{}'", name));
  }
  result_.columns.push_back(
      {.name = name.empty() ? "value" : name, .expression = std::move(expression)});
  return {};
}

// Without a select, groups show their key and their count.
Expected<void> Analyser::finish() {
  const bool shows_groups = result_.is_grouped && (!has_row_ || row_.kind == Value::Kind::Group);
  const bool is_value = row_.kind == Value::Kind::Scalar || row_.kind == Value::Kind::Place;
  if (!shows_groups) {
    CLEW_TRY(show_window());
    return add_columns(is_value ? row_name_ : "", row_);
  }
  for (const NamedExpression& key : result_.keys) {
    const bool is_pane = build_.query.window && &key == result_.keys.data();
    if (is_pane) {
      CLEW_TRY(show_window());
    } else {
      CLEW_TRY(add_columns(key.name, scalar_value(key.expression)));
    }
  }
  Expression count = CLEW_TRY(evaluator_.aggregate("count", {}, row_span_));
  const bool is_taken = std::any_of(result_.columns.begin(), result_.columns.end(),
                                    [](const NamedExpression& c) { return c.name == "count"; });
  return add_columns(is_taken ? "count()" : "count", scalar_value(std::move(count)));
}

}  // namespace clew::query
