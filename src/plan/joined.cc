// SPDX-License-Identifier: Apache-2.0
#include "plan/joined.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "plan/coder.h"
#include "plan/joined_events.h"
#include "query/arithmetic.h"
#include "query/print.h"
#include "query/walk.h"

namespace clew::plan {
namespace {

using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::Query;
using query::Source;

Expression input(uint16_t stream, size_t index, const Expression& like) {
  Expression made;
  made.kind = ExpressionKind::Input;
  made.type = like.type;
  made.span = like.span;
  made.stream = stream;
  made.index = static_cast<uint16_t>(index);
  return made;
}

// The stream whose events it is computed from alone; none: of several, or of a joined query.
struct Streams {
  std::optional<uint16_t> only;
  bool mixed = false;
};

Streams streams_of(const Expression& expression) {
  Streams streams;
  query::visit(expression, [&streams](const Expression& node) {
    const bool is_of_event =
        node.kind == ExpressionKind::Field || node.kind == ExpressionKind::Input;
    if (node.kind == ExpressionKind::JoinColumn) streams.mixed = true;
    if (!is_of_event) return;
    if (streams.only && *streams.only != node.stream) streams.mixed = true;
    streams.only = node.stream;
  });
  return streams;
}

// Whether its value is there in the moment of the event alone.
bool needs_probe(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::Load:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
      return true;
    case ExpressionKind::Call:
      return expression.function == query::Function::Sample ||
             expression.function == query::Function::Extension;
    case ExpressionKind::Integer:
    case ExpressionKind::Float:
    case ExpressionKind::String:
    case ExpressionKind::Field:
    case ExpressionKind::Input:
    case ExpressionKind::Let:
    case ExpressionKind::Value:
    case ExpressionKind::Aggregate:
    case ExpressionKind::JoinColumn:
    case ExpressionKind::Unary:
    case ExpressionKind::Binary:
    case ExpressionKind::Conditional:
    case ExpressionKind::Convert:
    case ExpressionKind::In:
      return false;
  }
  return false;
}

class Separator {
 public:
  Separator(const query::Reporter& report, const std::vector<Field>& also)
      : report_(report), also_(also) {}

  Expected<Joined> run(const Query& query, const std::vector<query::Carrier>& carriers);

 private:
  Expected<size_t> add_stage(const Query& query);
  void add_carrier(const query::Carrier& carrier);
  size_t add_emitter(std::vector<Source> sources, JoinRole role);
  void find_shared();
  Expected<void> rewrite_stage(size_t stage, const Query& query);
  Expected<void> sample_keys(const Query& query);
  Expected<void> rewrite_keys(size_t stage, const Query& query);
  Expected<void> rewrite_rest(size_t stage, const Query& query);
  [[nodiscard]] Expected<void> check_unformatted(const Query& query) const;
  [[nodiscard]] std::string_view why_behind(size_t stage, const Expression& condition) const;
  Expected<Expression> rewrite(size_t stage, const Expression& expression);
  void place_streams(size_t stage, const Query& query);

  const query::Reporter& report_;
  const std::vector<Field>& also_;
  Joined result_;
  std::vector<Emitter> emitters_;
  // By stage and stream: its emitter, unless it is a subquery.
  std::vector<std::vector<size_t>> emitter_of_;
  std::vector<const Query*> queries_;  // By stage.
};

// --- the streams -------------------------------------------------------------------------------

size_t Separator::add_emitter(std::vector<Source> sources, JoinRole role) {
  Emitter& made = emitters_.emplace_back();
  made.sources = std::move(sources);
  made.role = std::move(role);
  return emitters_.size() - 1;
}

// A thread that begins, or goes on, does so before the event, and hands over behind it.
bool is_before_event(query::Act act) {
  using query::Act;
  return act == Act::Begin || act == Act::Take || act == Act::Join || act == Act::Receive ||
         act == Act::Multiplex;
}

void Separator::add_carrier(const query::Carrier& carrier) {
  const size_t at = add_emitter({carrier.source}, {.carrier = carrier});
  using Turn = Emitter::Turn;
  emitters_[at].turn = is_before_event(carrier.cause.act) ? Turn::Before : Turn::Behind;
  emitters_[at].medium = carrier.cause.medium;
  emitters_[at].filters = carrier.conditions;
  for (const Expression& key : carrier.keys) {
    emitters_[at].leaf(key);
    // The kernel's own can be read.
    const bool is_of_process = !query::is_kernel_source(carrier.source.kind);
    if (is_of_process && query::contains(key, query::reads_memory))
      result_.carriers_read_memory = true;
  }
}

Expected<size_t> Separator::add_stage(const Query& query) {
  const size_t stage = result_.stages.size();
  result_.stages.emplace_back();
  emitter_of_.emplace_back();
  queries_.push_back(&query);
  const auto add = [&](const std::vector<Source>& sources, uint16_t stream) {
    const size_t at = add_emitter(sources, {.stage = stage, .stream = stream});
    emitter_of_[stage].push_back(at);
    result_.stages[stage].streams.emplace_back();
  };
  add(query.sources, 0);
  for (const query::Join& join : query.joins) {
    add(join.sources, static_cast<uint16_t>(emitter_of_[stage].size()));
    result_.stages[stage].joins.push_back(
        {.left = join.left, .filter = join.filter, .count = join.count, .after = join.after});
    if (join.subquery.empty()) continue;
    const size_t inner = CLEW_TRY(add_stage(join.subquery[0]));
    result_.stages[stage].streams.back().subquery = inner;
  }
  return stage;
}

// One hit of a source that several streams name is one event.
void Separator::find_shared() {
  for (Emitter& one : emitters_) {
    one.shares = std::any_of(emitters_.begin(), emitters_.end(), [&one](const Emitter& other) {
      return &one != &other && have_common_source(one, other);
    });
  }
}

// --- what is done on joined rows -----------------------------------------------------------------

Expression without_lets(const Expression& expression, const Query& query) {
  Expression result = expression;
  query::transform(result, [&](Expression& node) {
    if (node.kind != ExpressionKind::Let) return false;
    node = without_lets(query.lets[node.index].expression, query);
    return true;
  });
  return result;
}

// Leaves are inputs of their streams until all are known (place_streams).
Expected<Expression> Separator::rewrite(size_t stage, const Expression& expression) {
  if (query::is_constant(expression)) return expression;
  if (expression.kind == ExpressionKind::JoinColumn)
    return input(expression.stream, expression.index, expression);
  const Streams streams = streams_of(expression);
  const bool names = query::contains(expression, is_common_field);
  // All else is done behind the join, so that a file of events says the same of an argument
  // whatever debug information says of its type.
  const bool is_of_event =
      expression.kind == ExpressionKind::Field || expression.kind == ExpressionKind::Input;
  if (is_of_event || (needs_probe(expression) && !streams.mixed && !names)) {
    const uint16_t stream = streams.only.value_or(0);
    return input(stream, emitters_[emitter_of_[stage][stream]].leaf(expression), expression);
  }
  if (needs_probe(expression)) {
    return report_.fail(expression.span,
                        streams.mixed ? "this is computed where an event happens, and needs "
                                        "another event's values"
                                      : "this is computed where the event happens, where names "
                                        "are not known");
  }
  Expression result = expression;
  for (Expression& operand : result.operands)
    operand = CLEW_TRY(rewrite(stage, operand));
  return result;
}

// As each of its sources has it.
bool probes_can(const Emitter& emitter, const Expression& condition) {
  return std::all_of(
      emitter.sources.begin(), emitter.sources.end(),
      [&condition](const Source& source) { return probe_can(query::bind(condition, source)); });
}

// Empty: the condition may stand in front of the merge.
std::string_view Separator::why_behind(size_t stage, const Expression& condition) const {
  const Streams streams = streams_of(condition);
  if (streams.mixed) return "it is of several events";
  if (!streams.only) return "it is of no event";
  if (query::contains(condition, is_common_field)) return "the tracer knows the names";
  const Emitter& emitter = emitters_[emitter_of_[stage][*streams.only]];
  if (emitter.shares) return "another stream has the same events";
  if (!probes_can(emitter, condition)) return "probes do not compute it";
  if (*streams.only == 0) return "";
  if (query::is_outstanding(*queries_[stage])) return "it is of the moment that is asked about";
  const JoinStage::Join& join = result_.stages[stage].joins[*streams.only - 1U];
  if (join.left) return "a left join keeps what it finds nothing for";
  if (join.filter != query::JoinFilter::All) return "others that pass are not taken instead";
  return "";
}

Expected<void> Separator::rewrite_keys(size_t stage, const Query& query) {
  for (size_t i = 0; i < query.joins.size(); ++i) {
    if (!query.joins[i].within) continue;
    query::Within within = *query.joins[i].within;
    for (std::vector<Expression>* keys : {&within.joined, &within.other}) {
      for (Expression& key : *keys)
        key = CLEW_TRY(rewrite(stage, key));
    }
    result_.stages[stage].joins[i].within = std::move(within);
  }
  return {};
}

Expected<void> Separator::rewrite_rest(size_t stage, const Query& query) {
  Query& rest = result_.stages[stage].rest;
  for (size_t i = 0; i < query.where.size(); ++i) {
    const Expression plain = without_lets(query.where[i], query);
    const std::string_view why = why_behind(stage, plain);
    if (why.empty()) {
      result_.stages[stage].pushed.push_back(i);
      emitters_[emitter_of_[stage][*streams_of(plain).only]].filters.push_back(plain);
    } else {
      rest.where.push_back(CLEW_TRY(rewrite(stage, plain)));
      result_.stages[stage].behind.push_back({.condition = i, .why = why});
    }
  }
  for (const query::NamedExpression& value : query.values) {
    rest.values.push_back(
        {.name = value.name,
         .expression = CLEW_TRY(rewrite(stage, without_lets(value.expression, query)))});
  }
  rest.aggregates = query.aggregates;
  for (query::Aggregate& aggregate : rest.aggregates) {
    for (Expression& argument : aggregate.arguments)
      argument = CLEW_TRY(rewrite(stage, without_lets(argument, query)));
  }
  return {};
}

// hash(key) % n == 0; where n is a power of two, a probe need not divide.
Expected<Expression> is_one_of(const query::Reporter& report, const Expression& key, uint64_t n) {
  Expression hash;
  hash.kind = ExpressionKind::Call;
  hash.function = query::Function::Hash;
  hash.type = query::kUint64;
  hash.span = key.span;
  hash.operands = {key};
  const auto constant = [&key](uint64_t value) {
    return query::integer_constant(static_cast<int64_t>(value), query::kUint64, key.span);
  };
  const bool is_mask = std::has_single_bit(n);
  const auto by = is_mask ? query::BinaryOperator::And : query::BinaryOperator::Modulo;
  Expression rest = CLEW_TRY(
      query::make_binary(report, by, {std::move(hash), constant(is_mask ? n - 1 : n)}, key.span));
  return query::make_binary(report, query::BinaryOperator::Equal, {std::move(rest), constant(0)},
                            key.span);
}

// Of what is outstanding: whoever begins or ends something looks at its key first.
Expected<void> Separator::sample_keys(const Query& query) {
  const query::Within& within = *query.joins[0].within;
  if (within.one_in == 1) return {};
  for (const uint16_t stream : {uint16_t{0}, uint16_t{1}}) {
    Emitter& emitter = emitters_[emitter_of_[0][stream]];
    const Expression& key = (stream == 0 ? within.other : within.joined).back();
    if (emitter.shares || !probes_can(emitter, key)) {
      return report_.fail(key.span, emitter.shares
                                        ? "'one in' needs begins and ends at different places"
                                        : "'one in' needs a key that probes compute");
    }
    emitter.filters.push_back(CLEW_TRY(is_one_of(report_, key, within.one_in)));
  }
  return {};
}

// Names have been given to code addresses by then.
void name_symbols(Query& rest) {
  const auto name = [](Expression& node) {
    if (node.type.kind != query::TypeKind::Symbol) return;
    node.type = {.kind = query::TypeKind::String,
                 .size_bytes = 0,
                 .is_signed = false,
                 .capacity_bytes = query::kKeyStringMaxBytes};
  };
  for (query::NamedExpression& value : rest.values)
    query::visit(value.expression, name);
  for (query::Aggregate& aggregate : rest.aggregates) {
    for (Expression& argument : aggregate.arguments)
      query::visit(argument, name);
  }
  for (query::NamedExpression& column : rest.columns)
    query::visit(column.expression, name);
}

// The columns of a joined query are what its rows are.
void make_columns_values(Query& rest) {
  std::vector<query::NamedExpression> values;
  for (const query::NamedExpression& column : rest.columns) {
    Expression whole = column.expression;
    query::transform(whole, [&rest](Expression& node) {
      if (node.kind != ExpressionKind::Value) return false;
      node = rest.values[node.index].expression;
      return true;
    });
    values.push_back({.name = column.name, .expression = std::move(whole)});
  }
  rest.values = std::move(values);
}

// What stands in a row of a joined query are values.
Expected<void> Separator::check_unformatted(const Query& query) const {
  const auto is_printed = [](const Expression& node) {
    return node.kind == ExpressionKind::Call && node.function == query::Function::Print;
  };
  for (const query::NamedExpression& column : query.columns) {
    if (!query::contains(column.expression, is_printed)) continue;
    return report_.fail(column.expression.span,
                        "a query that is joined has values, and 'print' shows one: it is for the "
                        "columns of the whole query");
  }
  return {};
}

Expected<void> Separator::rewrite_stage(size_t stage, const Query& query) {
  result_.stages[stage].query = query;
  Query& rest = result_.stages[stage].rest;
  rest.shape = query.shape;
  rest.columns = query.columns;
  rest.having = query.having;
  rest.order = query.order;
  rest.take = query.take;
  rest.every_ns = query.every_ns;
  rest.window = query.window;
  rest.clustering = query.clustering;
  rest.for_ns = query.for_ns;
  rest.for_events = query.for_events;
  rest.enumerations = query.enumerations;
  rest.structures = query.structures;
  if (stage != 0) CLEW_TRY(check_unformatted(query));
  CLEW_TRY(rewrite_keys(stage, query));
  return rewrite_rest(stage, query);
}

// Side by side, and the rest's inputs with them.
void Separator::place_streams(size_t stage, const Query& query) {
  JoinStage& made = result_.stages[stage];
  for (size_t s = 0; s < made.streams.size(); ++s) {
    JoinStage::Stream& stream = made.streams[s];
    stream.begin = made.width;
    if (stream.subquery) {
      for (const auto& column : query.joins[s - 1].subquery[0].columns) {
        stream.columns.push_back(stream.columns.size());
        made.rest.inputs.push_back(
            {.name = query.joins[s - 1].name + "." + column.name, .type = column.expression.type});
      }
    } else {
      const Emitter& emitter = emitters_[emitter_of_[stage][s]];
      stream.columns = emitter.columns;
      for (const Expression& leaf : emitter.leaves)
        made.rest.inputs.push_back({.name = query::print(leaf, query), .type = leaf.type});
    }
    made.width += stream.columns.size();
  }
  const auto place = [&made](Expression& node) {
    if (node.kind != ExpressionKind::Input) return;
    node.index = static_cast<uint16_t>(made.streams[node.stream].begin + node.index);
    node.stream = 0;
  };
  // A joined event is looked at alone, before its columns are.
  for (JoinStage::Join& join : made.joins) {
    if (!join.within) continue;
    for (Expression& key : join.within->other)
      query::visit(key, place);
  }
  Query& rest = made.rest;
  for (Expression& condition : rest.where)
    query::visit(condition, place);
  for (query::NamedExpression& value : rest.values)
    query::visit(value.expression, place);
  for (query::Aggregate& aggregate : rest.aggregates) {
    for (Expression& argument : aggregate.arguments)
      query::visit(argument, place);
  }
  if (stage != 0 && rest.shape == query::Shape::Events) make_columns_values(rest);
  name_symbols(rest);
}

Expected<Joined> Separator::run(const Query& query, const std::vector<query::Carrier>& carriers) {
  for (const query::Carrier& carrier : carriers) {
    if (is_before_event(carrier.cause.act)) add_carrier(carrier);
  }
  CLEW_TRY(add_stage(query));
  for (const query::Carrier& carrier : carriers) {
    if (!is_before_event(carrier.cause.act)) add_carrier(carrier);
  }
  result_.least_cause = query::least_cause(query);
  find_shared();
  if (query::is_outstanding(query)) CLEW_TRY(sample_keys(query));
  for (size_t stage = 0; stage < queries_.size(); ++stage)
    CLEW_TRY(rewrite_stage(stage, *queries_[stage]));
  CLEW_TRY(make_events(emitters_, also_, report_, result_));
  for (size_t stage = 0; stage < queries_.size(); ++stage)
    place_streams(stage, *queries_[stage]);
  return std::move(result_);
}

}  // namespace

int64_t lag_of(const Joined& joined, size_t stage, size_t joins) {
  const JoinStage& of = joined.stages[stage];
  int64_t lag = 0;
  for (size_t i = 0; i < std::min(joins, of.joins.size()); ++i) {
    const auto& subquery = of.streams[i + 1].subquery;
    const query::Within& within = *of.joins[i].within;
    // Who chooses waits as long as a partner may be later, and may take one that was as much
    // earlier.
    const bool waits_for_both =
        of.joins[i].filter != query::JoinFilter::All && within.side == query::JoinSide::Either;
    lag += static_cast<int64_t>(within.ns) * (waits_for_both ? 2 : 1);
    if (subquery) lag += lag_of(joined, *subquery);
  }
  return lag;
}

Expected<Joined> separate(const query::Query& query, const std::vector<query::Carrier>& carriers,
                          const query::Reporter& report, const std::vector<Field>& also) {
  return Separator(report, also).run(query, carriers);
}

}  // namespace clew::plan
