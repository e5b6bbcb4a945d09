// SPDX-License-Identifier: Apache-2.0
#include "plan/in_place.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "abi/region.h"
#include "base/assert.h"
#include "plan/coder.h"
#include "plan/joined_events.h"
#include "plan/plan.h"
#include "plan/update.h"
#include "query/arithmetic.h"
#include "query/at_event.h"
#include "query/print.h"
#include "query/walk.h"

namespace clew::plan {

using abi::ContextAct;
using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::Query;
using query::Source;

bool is_known_at_hit(const Expression& object) {
  return !query::contains(object, [](const Expression& node) {
    const bool is_noted = node.kind == ExpressionKind::Field &&
                          (node.field == Field::EntryArgument || node.field == Field::Elapsed);
    return is_noted || query::reads_memory(node);
  });
}

bool Contexts::are_joined() const {
  return std::any_of(duties.begin(), duties.end(), [](const Duty& duty) {
    return duty.kind == Duty::Kind::Act && duty.act == ContextAct::Join;
  });
}

uint32_t Contexts::bag_words() const {
  uint32_t most = 0;
  for (const Bag& bag : bags)
    most = std::max(most, bag.words);
  return most;
}

uint64_t Contexts::kinds() const {
  uint64_t bits = 0;
  for (size_t i = bags.size(); i-- > 0;)
    bits = bits << abi::kBagKindBits | static_cast<uint64_t>(bags[i].kind);
  return bits;
}

namespace {

tl::unexpected<Error> refuse(const std::string& why) {
  return fail(ErrorCode::InvalidQuery,
              fmt::format("this query is not answered in place: {} (--plan emit answers it)", why));
}

// The same for all events of a process.
bool is_of_process(const Expression& expression) {
  return expression.kind == ExpressionKind::Field &&
         (expression.field == Field::Pid || expression.field == Field::ProcName ||
          expression.field == Field::Host || expression.field == Field::NodeName ||
          query::is_of_owner(expression.field));
}

class Maker {
 public:
  explicit Maker(const Joined& joined)
      : joined_(joined), asked_(joined.stages[0].query), stage_(joined.stages[0]) {}

  Expected<InPlace> run();
  // What is looked at: where an error is.
  [[nodiscard]] query::Span place() const { return place_; }

 private:
  Expected<void> check();
  void look_at(size_t stream);
  void look_at_column(size_t column);
  [[nodiscard]] const JoinStage* groups_of(size_t bag) const;
  Expression next_in(uint16_t at, const query::Type& type);
  Expected<void> add_column(uint16_t bag, size_t column, std::optional<Expression> value);
  Expected<void> add_cells(uint16_t bag, const JoinStage& groups);
  Expected<void> add_columns(uint16_t bag);
  Expected<void> carry(uint16_t bag, uint16_t other);
  Expected<void> make_bags();
  Expected<Duty> make_duty(size_t source);
  Expected<Duty> act_of(const JoinRole& role, size_t source) const;
  void add_source(size_t source, Duty duty);
  [[nodiscard]] Expression at_source(size_t column, size_t source) const;
  [[nodiscard]] uint16_t bag_of(const JoinRole& role) const;
  Expected<Duty> pack_columns(uint16_t bag, size_t source);
  [[nodiscard]] Expected<Duty> pack_cells(uint16_t bag, size_t source) const;
  [[nodiscard]] std::optional<Expression> condition_of(size_t source) const;
  [[nodiscard]] const Expression* field_of(size_t column) const;
  void restore_fields();

  // What a bag holds: a column of the joined row, or kNumber, and where it is from: another bag, or
  // none, the source.
  static constexpr size_t kNumber = SIZE_MAX;
  struct Content {
    size_t column = 0;
    std::optional<Expression> value;
  };

  const Joined& joined_;
  const Query& asked_;
  const JoinStage& stage_;
  query::Span place_{};
  InPlace result_;
  std::vector<std::vector<Content>> contents_;     // By bag.
  std::vector<std::vector<size_t>> carried_with_;  // By bag: it, and whose events come along.
  std::vector<Expression> number_of_;              // By bag: whether it is there, at last.
  std::vector<Expression> packed_;  // By column of the joined row: where it is at last.
};

// --- what can be ---------------------------------------------------------------------------------

// The joined query, if it is one.
const JoinStage* Maker::groups_of(size_t bag) const {
  const std::optional<size_t> stage = stage_.streams[bag + 1].subquery;
  return stage ? &joined_.stages[*stage] : nullptr;
}

// Groups that are one, of cells.
Expected<void> check_groups(const JoinStage& groups) {
  const Query& rest = groups.rest;
  if (rest.shape != query::Shape::Groups) return refuse("it joins a query of single events");
  if (!rest.values.empty()) return refuse("what happened before is counted by a key");
  if (!groups.joins.empty()) return refuse("it joins a query that joins others");
  if (!rest.where.empty() || !rest.having.empty() || rest.take)
    return refuse("it joins a query with a condition that no probe computes");
  const bool are_cells = std::all_of(
      rest.columns.begin(), rest.columns.end(), [&rest](const query::NamedExpression& column) {
        if (column.expression.kind != ExpressionKind::Aggregate) return false;
        const query::Aggregate& aggregate = rest.aggregates[column.expression.index];
        using abi::AggregateFunction;
        const AggregateFunction function = aggregate.function;
        return function == AggregateFunction::Count ||
               ((function == AggregateFunction::Sum || function == AggregateFunction::Min ||
                 function == AggregateFunction::Max) &&
                query::is_integer(aggregate.arguments[0]));
      });
  if (are_cells) return {};
  return refuse("of what happened before, only integers' count, sum, avg, min and max are kept");
}

// `from`, or a join.
void Maker::look_at(size_t stream) {
  if (stream != 0) {
    place_ = asked_.joins[stream - 1].span;
  } else if (!asked_.sources.empty()) {
    place_ = asked_.sources[0].span;
  }
}

// Where the query asks for it first.
void Maker::look_at_column(size_t column) {
  query::any_at_event(stage_.rest, [&](const Expression& root) {
    return query::contains(root, [&](const Expression& node) {
      const bool is_it = node.kind == ExpressionKind::Input && node.index == column &&
                         node.span.end > node.span.begin;
      if (is_it) place_ = node.span;
      return is_it;
    });
  });
}

Expected<void> Maker::check() {
  for (size_t i = 0; i < stage_.joins.size(); ++i) {
    const JoinStage::Join& join = stage_.joins[i];
    look_at(i + 1);
    if (join.left) return refuse("a left join has rows of what is not there");
    if (const JoinStage* const groups = groups_of(i)) {
      CLEW_TRY(check_groups(*groups));
      if (join.filter == query::JoinFilter::All) continue;
      return refuse("it joins one group of several");
    }
    const bool is_one = join.filter == query::JoinFilter::First ||
                        join.filter == query::JoinFilter::MostRecent ||
                        (join.filter != query::JoinFilter::All && join.count == 1);
    if (is_one) continue;
    return refuse(
        "of all events that happened before only count() is kept, and sum, avg, min and max of "
        "integers, with no condition that names another event, too; or ask for First or "
        "MostRecent");
  }
  return {};
}

// --- the bags ------------------------------------------------------------------------------------

// The column of `events` as the source has it.
Expression Maker::at_source(size_t column, size_t source) const {
  const Expression& value = joined_.events.values[column].expression;
  return value.kind == ExpressionKind::Input ? joined_.events.sources[source].inputs[value.index]
                                             : value;
}

// What is next in the bag, as who unpacks it reads it.
Expression Maker::next_in(uint16_t at, const query::Type& type) {
  Bag& bag = result_.contexts.bags[at];
  Expression packed = nothing(type);
  packed.kind = ExpressionKind::JoinColumn;
  packed.stream = static_cast<uint16_t>(at + 1);
  packed.index = static_cast<uint16_t>(bag.column_words.size());
  bag.column_words.push_back(bag.words);
  bag.words += stored_words(packed);
  return packed;
}

// A column of the joined row is packed here, for those that are later still.
Expected<void> Maker::add_column(uint16_t bag, size_t column, std::optional<Expression> value) {
  const query::Input& input = stage_.rest.inputs[column];
  look_at_column(column);
  if (input.type.kind != query::TypeKind::Integer && input.type.kind != query::TypeKind::String)
    return refuse(fmt::format("'{}' is no integer and no text", input.name));
  packed_[column] = next_in(bag, input.type);
  contents_[bag].push_back({.column = column, .value = std::move(value)});
  return {};
}

// How many there were is in front of the columns.
Expected<void> Maker::add_cells(uint16_t at, const JoinStage& groups) {
  const JoinStage::Stream& stream = stage_.streams[at + 1U];
  Bag& bag = result_.contexts.bags[at];
  bag.kind = abi::BagKind::Cells;
  for (size_t i = 0; i < groups.rest.columns.size(); ++i) {
    const Expression& column = groups.rest.columns[i].expression;
    const query::Aggregate& aggregate = groups.rest.aggregates[column.index];
    const size_t place = stream.begin + i;
    contents_[at].push_back({.column = place, .value = std::nullopt});
    if (aggregate.function == abi::AggregateFunction::Count) {
      packed_[place] = number_of_[at];
      packed_[place].type = column.type;
      continue;
    }
    packed_[place] = next_in(at, column.type);
    bag.words += aggregate::cell_words(spec_of(aggregate)) - 1;
  }
  return {};
}

Expected<void> Maker::add_columns(uint16_t bag) {
  if (const JoinStage* const groups = groups_of(bag)) return add_cells(bag, *groups);
  const JoinStage::Stream& stream = stage_.streams[bag + 1U];
  for (size_t i = 0; i < stream.columns.size(); ++i)
    CLEW_TRY(add_column(bag, stream.begin + i, std::nullopt));
  return {};
}

// What an event of the bag's stream is joined with comes along, there or not: its first event is
// not the first that is joined.
Expected<void> Maker::carry(uint16_t bag, uint16_t other) {
  const std::vector<Content> contents = contents_[other];
  for (size_t& stream : carried_with_[other]) {
    contents_[bag].push_back({.column = kNumber, .value = number_of_[stream]});
    number_of_[stream] = next_in(bag, query::kUint64);
    carried_with_[bag].push_back(stream);
  }
  for (const Content& content : contents) {
    if (content.column == kNumber) continue;
    CLEW_TRY(add_column(bag, content.column, packed_[content.column]));
  }
  return {};
}

// The streams of joins are in the order of their mention: the last ones come first.
Expected<void> Maker::make_bags() {
  const size_t count = stage_.joins.size();
  packed_.resize(stage_.width);
  contents_.resize(count);
  number_of_.resize(count);
  carried_with_.resize(count);
  result_.contexts.bags.resize(count);
  for (size_t at = count; at-- > 0;) {
    const JoinStage::Join& join = stage_.joins[at];
    const auto bag = static_cast<uint16_t>(at);
    const bool is_most_recent = join.filter == query::JoinFilter::MostRecent ||
                                join.filter == query::JoinFilter::MostRecentN;
    result_.contexts.bags[at].kind =
        is_most_recent ? abi::BagKind::MostRecent : abi::BagKind::First;
    result_.contexts.bags[at].column_words.push_back(0);
    number_of_[at] = nothing(query::kUint64);
    number_of_[at].kind = ExpressionKind::JoinColumn;
    number_of_[at].stream = static_cast<uint16_t>(at + 1);
    carried_with_[at].push_back(at);
    CLEW_TRY(add_columns(bag));
    for (size_t other = at + 1; other < count; ++other) {
      if (stage_.joins[other].after == at + 1) CLEW_TRY(carry(bag, static_cast<uint16_t>(other)));
    }
  }
  const abi::ContextLayout layout{.offset = 0,
                                  .blocks_offset = 0,
                                  .blocks_log2 = 0,
                                  .bags = static_cast<uint16_t>(result_.contexts.bags.size()),
                                  .bag_words = result_.contexts.bag_words()};
  if (layout.words() <= abi::kContextWordsMax) return {};
  return refuse(fmt::format("what is joined takes {} bytes, {} are possible; ask for shorter texts",
                            8 * layout.words(), 8 * abi::kContextWordsMax));
}

// --- the sources ---------------------------------------------------------------------------------

// An edge that is not believed leads nowhere.
std::optional<ContextAct> act_for(const query::Cause& cause, bool is_believed) {
  switch (cause.act) {
    case query::Act::Begin:
      return is_believed ? ContextAct::Begin : ContextAct::End;
    case query::Act::End:
      return ContextAct::End;
    case query::Act::Put:
      return is_believed ? ContextAct::Put : ContextAct::Doubt;
    case query::Act::Take:
      return is_believed ? ContextAct::Take : ContextAct::End;
    case query::Act::Join:
      return is_believed ? ContextAct::Join : ContextAct::End;
    case query::Act::Multiplex:  // What is read next is of nobody.
      return ContextAct::End;
    case query::Act::Fork:
    case query::Act::Execute:
    case query::Act::Exit:
    case query::Act::Connect:
    case query::Act::Send:
    case query::Act::Receive:
    case query::Act::Wait:
      return std::nullopt;
  }
  return std::nullopt;
}

Expected<Duty> Maker::act_of(const JoinRole& role, size_t source) const {
  const query::Cause& cause = role.carrier->cause;
  const bool is_believed = cause.how <= joined_.least_cause;
  std::optional<ContextAct> act = act_for(cause, is_believed);
  // What comes from another process is unknown here, and what goes there stays.
  if (cause.across) act = cause.act == query::Act::Put ? ContextAct::Doubt : ContextAct::End;
  if (!act) {
    return refuse(fmt::format("{} is seen by the tracer alone",
                              query::print(joined_.events.sources[source])));
  }
  Duty duty{.kind = Duty::Kind::Act, .act = *act, .how = cause.how};
  duty.is_weak = !is_believed && cause.act != query::Act::End && cause.act != query::Act::Put;
  if (role.key_columns.empty() || *act == ContextAct::End) return duty;
  // Of a token one half: nobody takes it here.
  CLEW_ASSERT(role.key_columns.size() == 1 || !cause.low_key.empty());
  Expression key = at_source(role.key_columns[0], source);
  // In a module that may come: a hit there could be missed.
  if (!is_known_at_hit(key)) {
    const bool takes = *act == ContextAct::Take || *act == ContextAct::Join;
    duty.act = takes ? ContextAct::End : ContextAct::Lose;
    return duty;
  }
  duty.operands.push_back(std::move(key));
  return duty;
}

// "wanted", where there are conditions.
std::optional<Expression> Maker::condition_of(size_t source) const {
  if (joined_.events.where.empty()) return std::nullopt;
  CLEW_ASSERT(joined_.events.where.size() == 1);
  const Expression& wanted = joined_.events.where[0];
  CLEW_ASSERT(wanted.kind == ExpressionKind::Input);
  const Expression& condition = joined_.events.sources[source].inputs[wanted.index];
  if (query::is_constant(condition)) return std::nullopt;  // 1
  return condition;
}

Expected<Duty> Maker::pack_columns(uint16_t bag, size_t source) {
  Duty duty{.kind = Duty::Kind::Pack, .bag = bag};
  const JoinStage::Stream& stream = stage_.streams[bag + 1U];
  for (const Content& content : contents_[bag]) {
    Expression value = content.value
                           ? *content.value
                           : at_source(stream.columns[content.column - stream.begin], source);
    if (is_of_process(value)) value = nothing(query::kInt32);  // Read where it is unpacked.
    if (!probe_can(value)) {
      look_at_column(content.column);
      return refuse(fmt::format("'{}' is known to the tracer alone",
                                stage_.rest.inputs[content.column].name));
    }
    duty.operands.push_back(std::move(value));
  }
  return duty;
}

// What each event adds.
Expected<Duty> Maker::pack_cells(uint16_t bag, size_t source) const {
  Duty duty{.kind = Duty::Kind::Pack, .bag = bag};
  const JoinStage& groups = *groups_of(bag);
  for (const query::NamedExpression& column : groups.rest.columns) {
    query::Aggregate cell = groups.rest.aggregates[column.expression.index];
    if (cell.function == abi::AggregateFunction::Count) continue;
    query::transform(cell.arguments[0], [&](Expression& node) {
      if (node.kind != ExpressionKind::Input) return false;
      node = at_source(groups.streams[0].columns[node.index], source);
      return true;
    });
    if (!probe_can(cell.arguments[0])) {
      return refuse(fmt::format("'{}' of {} is known to the tracer alone",
                                query::print(cell.arguments[0], joined_.events),
                                query::print(joined_.events.sources[source])));
    }
    duty.cells.push_back(std::move(cell));
  }
  return duty;
}

// Of a joined query's events, too.
uint16_t Maker::bag_of(const JoinRole& role) const {
  if (role.stage == 0) return static_cast<uint16_t>(role.stream - 1);
  size_t bag = 0;
  while (stage_.streams[bag + 1].subquery != role.stage)
    ++bag;
  return static_cast<uint16_t>(bag);
}

Expected<Duty> Maker::make_duty(size_t source) {
  const Source& place = joined_.events.sources[source];
  if (query::is_kernel_source(place.kind))
    return refuse(fmt::format("{} is in the kernel", query::print(place)));
  if (place.kind == query::SourceKind::Exception || place.kind == query::SourceKind::Usdt)
    return refuse(fmt::format("{} is no place that can pack", query::print(place)));
  if (joined_.roles[source].size() != 1)
    return refuse(fmt::format("{} is joined with itself", query::print(place)));
  const JoinRole& role = joined_.roles[source][0];
  if (role.carrier) return act_of(role, source);
  if (role.stage == 0 && role.stream == 0) {
    return Duty{.operands = number_of_, .condition = condition_of(source)};
  }
  const uint16_t bag = bag_of(role);
  Duty duty =
      CLEW_TRY(groups_of(bag) != nullptr ? pack_cells(bag, source) : pack_columns(bag, source));
  duty.condition = condition_of(source);
  return duty;
}

// With what the joined row has, as it is there: packed, or its own.
void Maker::add_source(size_t source, Duty duty) {
  Source made = joined_.events.sources[source];
  made.inputs.clear();
  for (const query::Input& input : stage_.rest.inputs)
    made.inputs.push_back(nothing(input.type));
  for (size_t s = 0; duty.kind == Duty::Kind::Answer && s < stage_.streams.size(); ++s) {
    const JoinStage::Stream& stream = stage_.streams[s];
    for (size_t i = 0; i < stream.columns.size(); ++i) {
      Expression value = at_source(stream.columns[i], source);
      if (s != 0) value = packed_[stream.begin + i];
      made.inputs[stream.begin + i] = std::move(value);
    }
  }
  result_.query.sources.push_back(std::move(made));
  result_.contexts.duties.push_back(std::move(duty));
}

// The field of the event itself that a column of the joined row is: the tracer knows fields by
// name, as it names what they stand for.
const Expression* Maker::field_of(size_t column) const {
  for (size_t s = 0; s < stage_.streams.size(); ++s) {
    const JoinStage::Stream& stream = stage_.streams[s];
    if (stream.subquery || column - stream.begin >= stream.columns.size()) continue;
    const Expression& value =
        joined_.events.values[stream.columns[column - stream.begin]].expression;
    if (is_common_field(value) && (s == 0 || is_of_process(value))) return &value;
  }
  return nullptr;
}

// Joined rows have names where events have fields, and code addresses.
void Maker::restore_fields() {
  Query& query = result_.query;
  query::visit_at_event(query, [&](Expression& root) {
    query::visit(root, [&](Expression& node) {
      if (node.kind != ExpressionKind::Input) return;
      if (const Expression* const field = field_of(node.index)) {
        node = *field;
      } else {
        node.type = query.inputs[node.index].type;
      }
    });
  });
  for (query::NamedExpression& column : query.columns) {
    query::visit(column.expression, [&query](Expression& node) {
      if (node.kind == ExpressionKind::Value) node.type = query.values[node.index].expression.type;
    });
  }
}

Expected<InPlace> Maker::run() {
  CLEW_TRY(check());
  CLEW_TRY(make_bags());
  result_.query = stage_.rest;
  restore_fields();
  for (size_t source = 0; source < joined_.events.sources.size(); ++source) {
    const JoinRole& role = joined_.roles[source][0];
    if (!role.carrier) look_at(role.stage == 0 ? role.stream : bag_of(role) + 1U);
    Duty duty = CLEW_TRY(make_duty(source));
    add_source(source, std::move(duty));
  }
  return std::move(result_);
}

// The first that the probes do not compute.
query::Span beyond_probes(const Plan& plan) {
  const Query& query = plan.query;
  const auto is_behind = [&plan](OperatorKind kind, size_t index) {
    return !plan.pushed(kind, static_cast<uint16_t>(index));
  };
  for (size_t i = 0; i < query.where.size(); ++i) {
    if (is_behind(OperatorKind::Filter, i)) return query.where[i].span;
  }
  for (size_t i = 0; i < query.values.size(); ++i) {
    if (is_behind(OperatorKind::Select, i)) return query.values[i].expression.span;
  }
  for (const query::Aggregate& aggregate : query.aggregates) {
    for (const Expression& argument : aggregate.arguments) {
      if (!all_probes_can(query, argument)) return argument.span;
    }
  }
  return query.sources[0].span;
}

}  // namespace

Expected<void> check_in_place(const Plan& plan, const query::Reporter& report) {
  const bool is_counted = plan.query.shape == query::Shape::Events ||
                          plan.has(OperatorKind::PartialGroup) ||
                          plan.has(OperatorKind::PartialAggregate);
  if (plan.contexts.duties.empty() || is_counted) return {};
  return report.fail(
      beyond_probes(plan),
      refuse("this is not computed in probes (patterns, parts of texts, floating point)")
          .value()
          .message);
}

Expected<InPlace> in_place(const Joined& joined, const query::Reporter& report) {
  Maker maker(joined);
  Expected<InPlace> made = maker.run();
  if (!made) return report.fail(maker.place(), made.error().message);
  return made;
}

}  // namespace clew::plan
