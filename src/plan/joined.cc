// SPDX-License-Identifier: Apache-2.0
#include "plan/joined.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "aggregate/hash.h"
#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/syntax.h"
#include "query/unsupported.h"
#include "query/walk.h"

namespace clew::plan {
namespace {

using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::Query;
using query::Source;

// Those that an event of any source has: the tracer names them, so they are columns by themselves.
bool is_common(Field field) {
  switch (field) {
    case Field::Time:
    case Field::Pid:
    case Field::Tid:
    case Field::Cpu:
    case Field::Comm:
    case Field::ProcName:
    case Field::Host:
    case Field::Function:
    case Field::Module:
    case Field::Probe:
    case Field::Stack:
    case Field::UserStack:
    case Field::KernelStack:
      return true;
    case Field::Caller:
    case Field::Argument:
    case Field::ReturnValue:
    case Field::Elapsed:
    case Field::EntryArgument:
      return false;
  }
  return false;
}

bool is_common_field(const Expression& expression) {
  return expression.kind == ExpressionKind::Field && is_common(expression.field);
}

Expression input(uint16_t stream, size_t index, const Expression& like) {
  Expression made;
  made.kind = ExpressionKind::Input;
  made.type = like.type;
  made.span = like.span;
  made.stream = stream;
  made.index = static_cast<uint16_t>(index);
  return made;
}

// What a column holds; what it measures is said where it is used.
query::Type stored(query::Type type) {
  type.unit = query::Unit::None;
  type.enumeration = 0;
  return type;
}

Expression nothing(const query::Type& type) {
  Expression made;
  made.type = type;
  if (type.kind == query::TypeKind::String) made.kind = ExpressionKind::String;
  if (type.kind == query::TypeKind::Float) made.kind = ExpressionKind::Float;
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

// Events of one stream, or of one carrier.
struct Emitter {
  std::vector<Source> sources;
  std::vector<Expression> leaves;   // What is asked of its events, each once.
  std::vector<Expression> filters;  // In the probe.
  std::vector<size_t> columns;      // Of each leaf, in a row of `events`.
  JoinRole role;
  bool shares = false;  // A source of it is another stream's, too.
  // What happens at one hit in this order: a thread goes on in a request, there is an event, and it
  // hands over.
  enum class Turn : uint8_t { Before, Event, Behind } turn = Turn::Event;

  size_t leaf(const Expression& expression) {
    const auto found = std::find(leaves.begin(), leaves.end(), expression);
    if (found != leaves.end()) return static_cast<size_t>(found - leaves.begin());
    leaves.push_back(expression);
    return leaves.size() - 1;
  }
};

class Separator {
 public:
  explicit Separator(const query::Reporter& report) : report_(report) {}

  Expected<Joined> run(const Query& query, const std::vector<query::Carrier>& carriers);

 private:
  Expected<size_t> add_stage(const Query& query);
  void add_carrier(const query::Carrier& carrier);
  size_t add_emitter(std::vector<Source> sources, JoinRole role);
  void find_shared();
  Expected<void> rewrite_stage(size_t stage, const Query& query);
  Expected<void> rewrite_rest(size_t stage, const Query& query);
  [[nodiscard]] bool may_push(size_t stage, const Expression& condition) const;
  Expected<Expression> rewrite(size_t stage, const Expression& expression);
  void place_streams(size_t stage, const Query& query);
  void make_own_columns();
  void place_columns();
  Expected<void> add_filters(const Emitter& emitter, const Source& source,
                             Expression& wanted) const;
  Expected<void> add_filters();
  void name_inputs();
  Expected<void> make_events();
  std::vector<Source>::iterator find_source(const Source& source, Emitter::Turn turn);
  size_t common_column(const Expression& field);
  size_t free_slot(const query::Type& type, const std::vector<size_t>& taken);
  void add_source(const Emitter& emitter, const Source& source);

  const query::Reporter& report_;
  Joined result_;
  std::vector<Emitter> emitters_;
  std::vector<Emitter::Turn> turns_;  // By source of `events`.
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
  return act == Act::Begin || act == Act::Take || act == Act::Join || act == Act::Receive;
}

void Separator::add_carrier(const query::Carrier& carrier) {
  const size_t at = add_emitter({carrier.source}, {.carrier = carrier});
  using Turn = Emitter::Turn;
  emitters_[at].turn = is_before_event(carrier.cause.act) ? Turn::Before : Turn::Behind;
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

bool is_same_place(const Source& a, const Source& b) {
  return query::print(a) == query::print(b);
}

bool have_common_source(const Emitter& one, const Emitter& other) {
  if (one.turn != other.turn) return false;
  return std::any_of(one.sources.begin(), one.sources.end(), [&other](const Source& source) {
    return std::any_of(other.sources.begin(), other.sources.end(),
                       [&source](const Source& its) { return is_same_place(source, its); });
  });
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

bool Separator::may_push(size_t stage, const Expression& condition) const {
  const Streams streams = streams_of(condition);
  if (streams.mixed || !streams.only) return false;
  if (query::contains(condition, is_common_field)) return false;
  if (query::contains(condition, query::runs_in_tracer_only)) return false;
  if (emitters_[emitter_of_[stage][*streams.only]].shares) return false;
  if (*streams.only == 0) return true;
  const JoinStage::Join& join = result_.stages[stage].joins[*streams.only - 1U];
  return !join.left && join.filter == query::JoinFilter::All;
}

Expected<void> Separator::rewrite_rest(size_t stage, const Query& query) {
  Query& rest = result_.stages[stage].rest;
  for (size_t i = 0; i < query.where.size(); ++i) {
    const Expression plain = without_lets(query.where[i], query);
    if (may_push(stage, plain)) {
      result_.stages[stage].pushed.push_back(i);
      emitters_[emitter_of_[stage][*streams_of(plain).only]].filters.push_back(plain);
    } else {
      rest.where.push_back(CLEW_TRY(rewrite(stage, plain)));
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

Expected<void> Separator::rewrite_stage(size_t stage, const Query& query) {
  Query& rest = result_.stages[stage].rest;
  rest.shape = query.shape;
  rest.columns = query.columns;
  rest.having = query.having;
  rest.order = query.order;
  rest.take = query.take;
  rest.every_ns = query.every_ns;
  rest.for_ns = query.for_ns;
  rest.for_events = query.for_events;
  rest.enumerations = query.enumerations;
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
  Query& rest = made.rest;
  for (Expression& condition : rest.where)
    query::visit(condition, place);
  for (query::NamedExpression& value : rest.values)
    query::visit(value.expression, place);
  for (query::Aggregate& aggregate : rest.aggregates) {
    for (Expression& argument : aggregate.arguments)
      query::visit(argument, place);
  }
  if (stage != 0) make_columns_values(rest);
  name_symbols(rest);
}

// --- the query of single events ------------------------------------------------------------------

size_t Separator::common_column(const Expression& field) {
  Expression plain = field;
  plain.stream = 0;
  plain.span = {};
  std::vector<query::NamedExpression>& values = result_.events.values;
  const auto found = std::find_if(values.begin(), values.end(), [&plain](const auto& value) {
    return value.expression == plain;
  });
  if (found != values.end()) return static_cast<size_t>(found - values.begin());
  std::string name = query::print(plain, result_.events);
  values.push_back({.name = std::move(name), .expression = std::move(plain)});
  return values.size() - 1;
}

// A column of the type that none of the `taken` is.
size_t Separator::free_slot(const query::Type& type, const std::vector<size_t>& taken) {
  Query& events = result_.events;
  for (size_t i = 0; i < events.values.size(); ++i) {
    const Expression& value = events.values[i].expression;
    const bool is_slot = value.kind == ExpressionKind::Input && i != Joined::kSource;
    if (is_slot && value.type == type && std::find(taken.begin(), taken.end(), i) == taken.end())
      return i;
  }
  Expression slot;
  slot.kind = ExpressionKind::Input;
  slot.type = type;
  slot.index = static_cast<uint16_t>(events.inputs.size());
  const std::string name = fmt::format("joined{}", events.inputs.size());
  events.inputs.push_back({.name = name, .type = type});
  for (Source& source : events.sources)
    source.inputs.push_back(nothing(type));
  events.values.push_back({.name = name, .expression = std::move(slot)});
  return events.values.size() - 1;
}

// As the source itself has them.
Expression bound(const Expression& expression, const Source& source) {
  Expression result = query::bind(expression, source);
  query::visit(result, [](Expression& node) { node.stream = 0; });
  result.type = stored(result.type);
  return result;
}

// The place of one of the emitter's sources, with what it asks of it.
void Separator::add_source(const Emitter& emitter, const Source& source) {
  Query& events = result_.events;
  auto found = find_source(source, emitter.turn);
  if (found == events.sources.end()) {
    turns_.push_back(emitter.turn);
    Source made = source;
    made.inputs.clear();
    for (const query::Input& each : events.inputs)
      made.inputs.push_back(nothing(each.type));
    made.inputs[0].integer = static_cast<int64_t>(events.sources.size());
    events.sources.push_back(std::move(made));
    result_.roles.emplace_back();
    found = std::prev(events.sources.end());
  }
  for (size_t i = 0; i < emitter.leaves.size(); ++i) {
    const Expression& value = events.values[emitter.columns[i]].expression;
    if (value.kind == ExpressionKind::Input)
      found->inputs[value.index] = bound(emitter.leaves[i], source);
  }
  JoinRole role = emitter.role;
  if (role.carrier) role.key_columns = emitter.columns;
  result_.roles[static_cast<size_t>(found - events.sources.begin())].push_back(std::move(role));
}

// A row says first whose it is; then where the thread is.
void Separator::make_own_columns() {
  Query& events = result_.events;
  events.shape = query::Shape::Events;
  events.inputs.push_back({.name = "source", .type = query::kInt32});
  Expression source;
  source.kind = ExpressionKind::Input;
  source.type = query::kInt32;
  events.values.push_back({.name = "source", .expression = std::move(source)});
  for (const Field field : {Field::Pid, Field::Tid, Field::Time})
    common_column(query::field_expression(field, 0, 0, {}));
  CLEW_ASSERT(events.values.size() == Joined::kOwnColumns);
}

void Separator::place_columns() {
  for (size_t i = 0; i < emitters_.size(); ++i) {
    std::vector<size_t> taken;
    for (size_t k = 0; k < i; ++k) {
      const std::vector<size_t>& others = emitters_[k].columns;
      if (have_common_source(emitters_[i], emitters_[k]))
        taken.insert(taken.end(), others.begin(), others.end());
    }
    for (const Expression& leaf : emitters_[i].leaves) {
      const size_t column =
          is_common_field(leaf) ? common_column(leaf) : free_slot(stored(leaf.type), taken);
      emitters_[i].columns.push_back(column);
      taken.push_back(column);
    }
  }
}

Expected<void> Separator::add_filters(const Emitter& emitter, const Source& source,
                                      Expression& wanted) const {
  for (const Expression& filter : emitter.filters) {
    wanted = CLEW_TRY(query::make_binary(report_, query::BinaryOperator::LogicalAnd,
                                         {std::move(wanted), bound(filter, source)}, filter.span));
  }
  return {};
}

// One more input, which is 0 where the event is not wanted.
Expected<void> Separator::add_filters() {
  const bool has_filters =
      std::any_of(emitters_.begin(), emitters_.end(),
                  [](const Emitter& emitter) { return !emitter.filters.empty(); });
  if (!has_filters) return {};
  Query& events = result_.events;
  Expression pass;
  pass.kind = ExpressionKind::Input;
  pass.type = query::kInt32;
  pass.index = static_cast<uint16_t>(events.inputs.size());
  events.inputs.push_back({.name = "wanted", .type = query::kInt32});
  for (Source& source : events.sources)
    source.inputs.push_back(query::integer_constant(1, query::kInt32, {}));
  for (const Emitter& emitter : emitters_) {
    for (const Source& source : emitter.sources)
      CLEW_TRY(add_filters(emitter, source, find_source(source, emitter.turn)->inputs[pass.index]));
  }
  events.where.push_back(std::move(pass));
  return {};
}

std::vector<Source>::iterator Separator::find_source(const Source& source, Emitter::Turn turn) {
  std::vector<Source>& all = result_.events.sources;
  for (size_t i = 0; i < all.size(); ++i) {
    if (turns_[i] == turn && is_same_place(all[i], source))
      return all.begin() + static_cast<ptrdiff_t>(i);
  }
  return all.end();
}

// By what they are at each source: in a file of events, what has the same name is the same.
void Separator::name_inputs() {
  Query& events = result_.events;
  for (size_t i = 0; i < events.inputs.size(); ++i) {
    std::string meaning;
    for (const Source& source : events.sources) {
      meaning +=
          fmt::format("{}: {}\n", query::print(source), query::print(source.inputs[i], events));
    }
    uint64_t hash = aggregate::kHashSeed;
    for (const char c : meaning)
      hash = aggregate::hash_step(hash, static_cast<unsigned char>(c));
    events.inputs[i].name += fmt::format("_{:016x}", hash);
  }
}

Expected<void> Separator::make_events() {
  make_own_columns();
  place_columns();
  for (const Emitter& emitter : emitters_) {
    for (const Source& source : emitter.sources)
      add_source(emitter, source);
  }
  Query& events = result_.events;
  if (events.sources.size() > query::kSourcesMax) {
    return fail(ErrorCode::Limit, fmt::format("the query has {} sources with those of its joins "
                                              "and of what carries causes, {} are possible",
                                              events.sources.size(), query::kSourcesMax));
  }
  CLEW_TRY(add_filters());
  name_inputs();
  for (size_t i = 0; i < events.values.size(); ++i) {
    Expression value;
    value.kind = ExpressionKind::Value;
    value.type = events.values[i].expression.type;
    value.index = static_cast<uint16_t>(i);
    events.columns.push_back({.name = events.values[i].name, .expression = std::move(value)});
  }
  return {};
}

Expected<Joined> Separator::run(const Query& query, const std::vector<query::Carrier>& carriers) {
  for (const query::Carrier& carrier : carriers) {
    if (is_before_event(carrier.cause.act)) add_carrier(carrier);
  }
  CLEW_TRY(add_stage(query));
  for (const query::Carrier& carrier : carriers) {
    if (!is_before_event(carrier.cause.act)) add_carrier(carrier);
  }
  find_shared();
  for (size_t stage = 0; stage < queries_.size(); ++stage)
    CLEW_TRY(rewrite_stage(stage, *queries_[stage]));
  CLEW_TRY(make_events());
  for (size_t stage = 0; stage < queries_.size(); ++stage)
    place_streams(stage, *queries_[stage]);
  return std::move(result_);
}

}  // namespace

Expected<Joined> separate(const query::Query& query, const std::vector<query::Carrier>& carriers,
                          const query::Reporter& report) {
  return Separator(report).run(query, carriers);
}

}  // namespace clew::plan
