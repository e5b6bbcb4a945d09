// SPDX-License-Identifier: Apache-2.0
#include "plan/joined_events.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "aggregate/hash.h"
#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/walk.h"

namespace clew::plan {

using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::Query;
using query::Source;

namespace {

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
    case Field::NodeName:
    case Field::Container:
    case Field::Unit:
    case Field::ControlGroup:
    case Field::User:
    case Field::Uid:
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

bool is_same_place(const Source& a, const Source& b) {
  return query::print(a) == query::print(b);
}

}  // namespace

Expression nothing(const query::Type& type) {
  Expression made;
  made.type = type;
  if (type.kind == query::TypeKind::String) made.kind = ExpressionKind::String;
  if (type.kind == query::TypeKind::Float) made.kind = ExpressionKind::Float;
  return made;
}

bool is_common_field(const Expression& expression) {
  return expression.kind == ExpressionKind::Field && is_common(expression.field);
}

// Carriers that are not the same hits have a probe each; of streams that share a place no condition
// is there.
bool is_one_probe(const Emitter& one, const Emitter& other) {
  return one.turn == other.turn && one.medium == other.medium &&
         (!one.role.carrier || one.filters == other.filters);
}

bool have_common_source(const Emitter& one, const Emitter& other) {
  if (!is_one_probe(one, other)) return false;
  return std::any_of(one.sources.begin(), one.sources.end(), [&other](const Source& source) {
    return std::any_of(other.sources.begin(), other.sources.end(),
                       [&source](const Source& its) { return is_same_place(source, its); });
  });
}

namespace {

// What a column holds; what it measures is said where it is used.
query::Type stored(query::Type type) {
  type.unit = query::Unit::None;
  type.enumeration = 0;
  return type;
}

class EventsMaker {
 public:
  EventsMaker(std::vector<Emitter>& emitters, const query::Reporter& report, Joined& result)
      : emitters_(emitters), report_(report), result_(result) {}

  Expected<void> run(const std::vector<Field>& also);

 private:
  void make_own_columns();
  void place_columns();
  [[nodiscard]] bool has_several_places() const;
  void add_other_columns(const std::vector<Field>& also);
  Expected<void> add_filters(const Emitter& emitter, const Source& source,
                             Expression& wanted) const;
  Expected<void> add_filters();
  void name_inputs();
  std::vector<Source>::iterator find_source(const Source& source, const Emitter& emitter);
  size_t common_column(const Expression& field);
  size_t free_slot(const query::Type& type, const std::vector<size_t>& taken);
  void add_source(const Emitter& emitter, const Source& source);

  std::vector<Emitter>& emitters_;
  const query::Reporter& report_;
  Joined& result_;
  std::vector<const Emitter*> first_;  // By source of `events`.
};

size_t EventsMaker::common_column(const Expression& field) {
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
size_t EventsMaker::free_slot(const query::Type& type, const std::vector<size_t>& taken) {
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
void EventsMaker::add_source(const Emitter& emitter, const Source& source) {
  Query& events = result_.events;
  auto found = find_source(source, emitter);
  if (found == events.sources.end()) {
    first_.push_back(&emitter);
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
void EventsMaker::make_own_columns() {
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

// Else a stack is that of all events.
bool EventsMaker::has_several_places() const {
  const Source& first = emitters_[0].sources[0];
  return std::any_of(emitters_.begin(), emitters_.end(), [&first](const Emitter& emitter) {
    return std::any_of(emitter.sources.begin(), emitter.sources.end(),
                       [&first](const Source& source) { return !is_same_place(first, source); });
  });
}

void EventsMaker::place_columns() {
  for (size_t i = 0; i < emitters_.size(); ++i) {
    std::vector<size_t> taken;
    for (size_t k = 0; k < i; ++k) {
      const std::vector<size_t>& others = emitters_[k].columns;
      if (have_common_source(emitters_[i], emitters_[k]))
        taken.insert(taken.end(), others.begin(), others.end());
    }
    for (const Expression& leaf : emitters_[i].leaves) {
      const bool is_own_stack = leaf.type.kind == query::TypeKind::Stack && has_several_places();
      const bool is_common = is_common_field(leaf) && !is_own_stack;
      const size_t column = is_common ? common_column(leaf) : free_slot(stored(leaf.type), taken);
      emitters_[i].columns.push_back(column);
      taken.push_back(column);
    }
  }
}

void EventsMaker::add_other_columns(const std::vector<Field>& also) {
  const auto have = [](const Emitter& emitter, Field field) {
    return std::all_of(
        emitter.sources.begin(), emitter.sources.end(),
        [field](const Source& source) { return query::has_field(source.kind, field); });
  };
  for (const Field field : also) {
    CLEW_ASSERT(is_common(field));
    if (std::all_of(emitters_.begin(), emitters_.end(),
                    [&](const Emitter& emitter) { return have(emitter, field); }))
      (void)common_column(query::field_expression(field, 0, 0, {}));
  }
}

Expected<void> EventsMaker::add_filters(const Emitter& emitter, const Source& source,
                                        Expression& wanted) const {
  for (const Expression& filter : emitter.filters) {
    wanted = CLEW_TRY(query::make_binary(report_, query::BinaryOperator::LogicalAnd,
                                         {std::move(wanted), bound(filter, source)}, filter.span));
  }
  return {};
}

// One more input, which is 0 where the event is not wanted.
Expected<void> EventsMaker::add_filters() {
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
      CLEW_TRY(add_filters(emitter, source, find_source(source, emitter)->inputs[pass.index]));
  }
  events.where.push_back(std::move(pass));
  return {};
}

std::vector<Source>::iterator EventsMaker::find_source(const Source& source,
                                                       const Emitter& emitter) {
  std::vector<Source>& all = result_.events.sources;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_one_probe(*first_[i], emitter) && is_same_place(all[i], source))
      return all.begin() + static_cast<ptrdiff_t>(i);
  }
  return all.end();
}

// By what they are at each source: in a file of events, what has the same name is the same.
void EventsMaker::name_inputs() {
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

Expected<void> EventsMaker::run(const std::vector<Field>& also) {
  make_own_columns();
  place_columns();
  add_other_columns(also);
  for (const Emitter& emitter : emitters_) {
    for (const Source& source : emitter.sources)
      add_source(emitter, source);
  }
  Query& events = result_.events;
  if (events.sources.size() > kEventSourcesMax) {
    return fail(ErrorCode::Limit, fmt::format("the query has {} sources with those of its joins "
                                              "and of what carries causes, {} are possible",
                                              events.sources.size(), kEventSourcesMax));
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

}  // namespace

Expected<void> make_events(std::vector<Emitter>& emitters, const std::vector<query::Field>& also,
                           const query::Reporter& report, Joined& joined) {
  return EventsMaker(emitters, report, joined).run(also);
}

std::optional<size_t> column_of(const Joined& joined, query::Field field) {
  const std::vector<query::NamedExpression>& values = joined.events.values;
  const auto found = std::find_if(values.begin(), values.end(), [field](const auto& value) {
    const Expression& e = value.expression;
    return e.kind == ExpressionKind::Field && e.field == field;
  });
  if (found == values.end()) return std::nullopt;
  return static_cast<size_t>(found - values.begin());
}

}  // namespace clew::plan
