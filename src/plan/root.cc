// SPDX-License-Identifier: Apache-2.0
#include "plan/root.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "plan/coder.h"
#include "plan/evaluate.h"
#include "plan/update.h"
#include "query/print.h"

namespace clew::plan {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Row;
using aggregate::Value;
using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::TypeKind;

namespace {

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
    case TypeKind::Stack:
      return ColumnType::String;
  }
  return ColumnType::String;
}

aggregate::Unit unit_of(query::Unit unit) {
  return unit == query::Unit::Nanoseconds ? aggregate::Unit::Nanoseconds : aggregate::Unit::None;
}

std::string text_of(std::span<const uint64_t> words, const query::Type& type) {
  std::string text(words.size_bytes(), '\0');
  std::memcpy(text.data(), words.data(), words.size_bytes());
  if (type.kind == TypeKind::Bytes) {
    text.resize(std::min<size_t>(text.size(), type.capacity_bytes));
  } else {
    text.resize(std::min(text.size(), text.find('\0')));
  }
  return text;
}

// A float or a double as it is in memory.
uint64_t counted_bits(const Value& value, bool is_real) {
  return is_real ? std::bit_cast<uint64_t>(std::get<double>(value)) : bits_of(value);
}

double real_of_bits(uint64_t bits, uint32_t size_bytes) {
  if (size_bytes == 4) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

}  // namespace

// Captures of one event.
class Root::EventBindings final : public Bindings {
 public:
  EventBindings(Root& root, const collect::Event& event) : root_(root), event_(event) {
    std::span<const uint64_t> rest = event.words;
    for (const Expression& e : root.captured_.captures)
      places_.push_back(take_place(e, rest));
  }

  Value field(const Expression&) override { return {}; }
  Value input(uint16_t index) override {
    const Expression& meaning = root_.captured_.captures[index];
    if (meaning.kind == ExpressionKind::Field && meaning.field == Field::Time) {
      return static_cast<int64_t>(root_.lowered_.clock.monotonic_ns(event_.time));
    }
    if (!places_[index]) return {};
    return root_.decode(meaning, *places_[index], event_.process);
  }
  Value let(uint16_t) override { return {}; }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const Expression&, uint64_t) override { return {}; }

 private:
  using Words = std::span<const uint64_t>;

  // The words of a capture, off the front of the rest; none when they are not there.
  static std::optional<Words> take_place(const Expression& capture, Words& rest) {
    size_t count = words_in_event(capture).least;
    const bool has_length = has_own_length(capture);
    if (has_length && !rest.empty()) count += rest[0] / 8;
    if (count > rest.size()) {
      rest = {};
      return std::nullopt;
    }
    const Words words = rest.first(count);
    rest = rest.subspan(count);
    return has_length ? words.subspan(1) : words;
  }

  Root& root_;
  const collect::Event& event_;
  std::vector<std::optional<Words>> places_;
};

// A finished row: keys, then aggregates.
class Root::RowBindings final : public Bindings {
 public:
  RowBindings(const Row& row, size_t keys) : row_(row), keys_(keys) {}

  Value field(const Expression&) override { return {}; }
  Value input(uint16_t) override { return {}; }
  Value let(uint16_t) override { return {}; }
  Value value(uint16_t index) override { return row_[index]; }
  Value aggregate(uint16_t index) override { return row_[keys_ + index]; }
  Value memory(const Expression&, uint64_t) override { return {}; }

 private:
  const Row& row_;
  size_t keys_;
};

// A source that fires in the tracer.
class Root::HostBindings final : public Bindings {
 public:
  HostBindings(Root& root, uint16_t source, int64_t now_ns)
      : root_(root), source_(root.query_.sources[source]), now_ns_(now_ns) {}

  Value field(const Expression& expression) override {
    switch (expression.field) {
      case Field::Time:
        return now_ns_;
      case Field::Host:
        return root_.names_.host();
      case Field::Probe:
        return source_.label.empty() ? query::print(source_) : source_.label;
      case Field::Pid:
      case Field::Tid:
      case Field::Cpu:
      case Field::Comm:
      case Field::ProcName:
      case Field::Function:
      case Field::Module:
      case Field::Caller:
      case Field::Stack:
      case Field::UserStack:
      case Field::KernelStack:
      case Field::Argument:
      case Field::ReturnValue:
      case Field::Elapsed:
      case Field::EntryArgument:
        return {};
    }
    return {};
  }
  Value input(uint16_t index) override { return evaluate(source_.inputs[index], *this); }
  Value let(uint16_t index) override {
    return evaluate(root_.query_.lets[index].expression, *this);
  }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const Expression&, uint64_t) override { return {}; }

 private:
  Root& root_;
  const query::Source& source_;
  int64_t now_ns_;
};

Root::Root(const Plan& plan, const Lowered& lowered, const Grouping& grouping, Names& names)
    : query_(plan.query),
      lowered_(lowered),
      grouping_(grouping),
      names_(names),
      counted_(aggregate::TableSchema{}) {}

Expected<Root> Root::make(const Plan& plan, const Lowered& lowered, const Grouping& grouping,
                          Names& names) {
  Captured captured;
  if (lowered.form == StateForm::Events) captured = CLEW_TRY(capture(plan));
  return over(plan, lowered, grouping, names, std::move(captured));
}

Root Root::over(const Plan& plan, const Lowered& lowered, const Grouping& grouping, Names& names,
                Captured captured) {
  Root root(plan, lowered, grouping, names);
  root.captured_ = std::move(captured);
  for (const query::NamedExpression& value : plan.query.values) {
    root.schema_.keys.push_back(root.column_of(value));
  }
  for (const query::Aggregate& aggregate : plan.query.aggregates) {
    if (aggregate.kind == abi::AggregateFunction::TopK) {
      const query::NamedExpression counted{.name = "", .expression = aggregate.arguments[0]};
      root.schema_.keys.push_back(root.column_of(counted));
    }
    root.schema_.aggregates.push_back({.name = "", .spec = spec_of(aggregate)});
  }
  root.counted_ = aggregate::Table(root.schema_);
  root.make_columns();
  return root;
}

void Root::forget_counted() {
  counted_ = aggregate::Table(schema_);
}

Column Root::column_of(const query::NamedExpression& column) const {
  const Expression& e = column.expression;
  Column result{.name = column.name,
                .type = column_type(e.type),
                .unit = unit_of(e.type.unit),
                .aggregated = query::has_aggregate(e)};
  if (e.kind == ExpressionKind::Aggregate) {
    const aggregate::AggregateSpec spec = spec_of(query_.aggregates[e.index]);
    result.approximate = aggregate::approximate(spec);
    const ColumnType type = aggregate::result_type(spec);
    if (type == ColumnType::Histogram || type == ColumnType::TopList) result.type = type;
  }
  return result;
}

void Root::make_columns() {
  for (const query::NamedExpression& column : query_.columns) {
    columns_.push_back(column_of(column));
  }
}

// --- words to values ---------------------------------------------------------------------------

Value Root::decode_field(Field field, uint64_t word, uint64_t process) {
  switch (field) {
    case Field::Function:
      return names_.function(word);
    case Field::Module:
      return names_.module(word);
    case Field::Probe:
      return names_.probe(word);
    case Field::Pid:
      return names_.pid(word);
    case Field::ProcName:
      return names_.process_name(word);
    case Field::Comm:
      return names_.thread_name(process, word);
    case Field::Host:
      return names_.host();
    case Field::Time:
    case Field::Tid:
    case Field::Cpu:
    case Field::Caller:
    case Field::Stack:
    case Field::UserStack:
    case Field::KernelStack:
    case Field::Argument:
    case Field::ReturnValue:
    case Field::Elapsed:
    case Field::EntryArgument:
      return {};
  }
  return {};
}

Value Root::decode(const Expression& meaning, std::span<const uint64_t> words, uint64_t process) {
  if (meaning.kind == ExpressionKind::Field) {
    Value named = decode_field(meaning.field, words[0], process);
    if (!std::holds_alternative<std::monostate>(named)) return named;
  }
  const query::Type& type = meaning.type;
  if (type.kind == TypeKind::String || type.kind == TypeKind::Bytes) return text_of(words, type);
  if (type.kind == TypeKind::Integer && type.is_signed) return static_cast<int64_t>(words[0]);
  if (type.kind == TypeKind::Float) return real_of_bits(words[0], type.size_bytes);
  return words[0];
}

Value Root::key_of(Value value, const query::Type& type) {
  if (type.kind == TypeKind::Symbol) return names_.symbol(bits_of(value));
  return value;
}

Value Root::named(Value value, const query::Type& type) const {
  if (type.enumeration == 0 || std::holds_alternative<std::monostate>(value)) return value;
  const auto& list = query_.enumerations[type.enumeration - 1U].enumerators;
  const auto found = std::find_if(list.begin(), list.end(), [&](const query::Enumerator& e) {
    return static_cast<uint64_t>(e.value) == bits_of(value);
  });
  if (found != list.end()) return found->name;
  return static_cast<int64_t>(bits_of(value));
}

// --- cells to tables ---------------------------------------------------------------------------

void Root::add_dense(const aggregate::Accumulator& cells, uint32_t process,
                     aggregate::Table& table) {
  for (uint32_t group = 0; group < grouping_.keys.size(); ++group) {
    const std::span<const uint64_t> words = cells.group(process, 0, group);
    const bool untouched =
        std::all_of(words.begin(), words.end(), [](uint64_t word) { return word == 0; });
    if (untouched && !query_.values.empty()) continue;
    if (words.empty()) continue;
    aggregate::Key key = grouping_.keys[group];
    for (size_t i = 0; i < key.size(); ++i) {
      const Expression& value = query_.values[i].expression;
      if (is_process_constant(value)) key[i] = decode_field(value.field, process, process);
    }
    table.add(key, words);
  }
}

void Root::add_table(const aggregate::Accumulator& cells, uint32_t process,
                     aggregate::Table& table) {
  for (const auto& [words, counts] : cells.table(process, 0)) {
    aggregate::Key key;
    std::span<const uint64_t> rest(words);
    const auto take_part = [&](const Expression& meaning) {
      const size_t count = stored_words(meaning);
      key.push_back(key_of(decode(meaning, rest.first(count), process), meaning.type));
      rest = rest.subspan(count);
    };
    for (const query::NamedExpression& value : query_.values) {
      take_part(value.expression);
    }
    for (const query::Aggregate& aggregate : query_.aggregates) {
      if (aggregate.kind != abi::AggregateFunction::TopK) continue;
      take_part(aggregate.arguments[0]);
      key.back() = named(std::move(key.back()), aggregate.arguments[0].type);
    }
    table.add(key, counts);
  }
}

aggregate::Table Root::table_of(const aggregate::Accumulator& cells) {
  aggregate::Table table(schema_);
  for (const uint32_t process : cells.processes()) {
    if (lowered_.form == StateForm::Dense) add_dense(cells, process, table);
    if (lowered_.form == StateForm::Table) add_table(cells, process, table);
  }
  return table;
}

// --- rows --------------------------------------------------------------------------------------

// The key column that top-k counts; SIZE_MAX when there is none.
size_t Root::top_index() const {
  const bool counts_values =
      std::any_of(query_.aggregates.begin(), query_.aggregates.end(),
                  [](const auto& a) { return a.kind == abi::AggregateFunction::TopK; });
  return counts_values ? query_.values.size() : SIZE_MAX;
}

Row Root::project(const Row& row) {
  RowBindings bindings(row, query_.values.size());
  Row result;
  for (const query::NamedExpression& column : query_.columns) {
    const Expression& e = column.expression;
    result.push_back(named(evaluate(e, bindings), e.type));
    if (column_type(e.type) == ColumnType::Time) result.back() = wall_clock(result.back());
  }
  return result;
}

// Answers speak of the time of day; everything before them is in the monotonic clock.
Value Root::wall_clock(const Value& monotonic) const {
  if (const auto* ns = std::get_if<double>(&monotonic)) {
    return std::llround(*ns) + lowered_.clock.epoch_ns;
  }
  if (const auto* ns = std::get_if<int64_t>(&monotonic)) return *ns + lowered_.clock.epoch_ns;
  return monotonic;
}

// An aggregate of everything has a row, even when nothing has happened.
std::vector<Row> Root::row_of_nothing() const {
  aggregate::Table table(schema_);
  table.add({}, std::vector<uint64_t>(schema_.cell_words()));
  return table.rows();
}

std::vector<Row> Root::rows(const aggregate::Table& table) {
  const bool counts_values = top_index() != SIZE_MAX;
  std::vector<Row> full = counts_values ? table.fold_top(top_index()) : table.rows();
  const bool counts_all = query_.shape == query::Shape::Groups && query_.values.empty();
  if (counts_all && full.empty() && !counts_values) full = row_of_nothing();
  const size_t keys = query_.values.size();
  std::erase_if(full, [&](const Row& row) {
    RowBindings bindings(row, keys);
    return !std::all_of(query_.having.begin(), query_.having.end(),
                        [&](const Expression& e) { return is_true(evaluate(e, bindings)); });
  });
  // Sort keys go in front, so that one stable sort orders rows of any shape.
  std::vector<aggregate::Order> orders;
  for (size_t i = 0; i < query_.order.size(); ++i) {
    orders.push_back({.column = i, .descending = query_.order[i].descending});
  }
  std::vector<Row> sorted;
  for (const Row& row : full) {
    RowBindings bindings(row, keys);
    Row with_keys;
    for (const query::OrderBy& order : query_.order) {
      with_keys.push_back(evaluate(order.expression, bindings));
    }
    Row projected = project(row);
    std::move(projected.begin(), projected.end(), std::back_inserter(with_keys));
    sorted.push_back(std::move(with_keys));
  }
  aggregate::sort_rows(sorted, orders);
  if (query_.take && sorted.size() > *query_.take) sorted.resize(*query_.take);
  for (Row& row : sorted) {
    row.erase(row.begin(), row.begin() + static_cast<ptrdiff_t>(orders.size()));
  }
  return sorted;
}

// --- events ------------------------------------------------------------------------------------

std::vector<Row> Root::count_or_emit(Row values, std::span<const Value> arguments) {
  if (query_.shape == query::Shape::Events) {
    RowBindings bindings(values, values.size());
    const bool keep =
        std::all_of(query_.having.begin(), query_.having.end(),
                    [&](const Expression& e) { return is_true(evaluate(e, bindings)); });
    if (!keep) return {};
    return {project(values)};
  }
  std::vector<uint64_t> cells(schema_.cell_words());
  size_t word = 0;
  size_t argument = 0;
  for (const query::Aggregate& aggregate : query_.aggregates) {
    const aggregate::AggregateSpec spec = spec_of(aggregate);
    const size_t count = aggregate::cell_words(spec);
    const std::span<uint64_t> cell = std::span(cells).subspan(word, count);
    const Value* value = aggregate.arguments.empty() ? nullptr : &arguments[argument++];
    if (value != nullptr && std::holds_alternative<std::monostate>(*value)) return {};
    if (aggregate.kind == abi::AggregateFunction::TopK) {
      const query::Type& type = aggregate.arguments[0].type;
      values.push_back(named(key_of(*value, type), type));
    }
    if (aggregate.kind == abi::AggregateFunction::Distinct) {
      aggregate::add_distinct(cell, hash_of_value(*value, aggregate.arguments[0].type));
    } else {
      aggregate::add(spec, cell, value == nullptr ? 0 : counted_bits(*value, spec.is_real));
    }
    word += count;
  }
  counted_.add(values, cells);
  ++passed_;
  return {};
}

std::vector<Row> Root::take(const collect::Event& event) {
  EventBindings bindings(*this, event);
  const bool pass =
      std::all_of(captured_.filters.begin(), captured_.filters.end(),
                  [&](const Expression& e) { return is_true(evaluate(e, bindings)); });
  if (!pass) return {};
  Row values;
  values.reserve(captured_.values.size());
  for (const Expression& e : captured_.values) {
    values.push_back(key_of(evaluate(e, bindings), e.type));
  }
  std::vector<Value> arguments;
  arguments.reserve(captured_.arguments.size());
  for (const Expression& e : captured_.arguments) {
    arguments.push_back(evaluate(e, bindings));
  }
  return count_or_emit(std::move(values), arguments);
}

std::vector<Row> Root::fire(uint16_t source, int64_t monotonic_ns) {
  HostBindings bindings(*this, source, monotonic_ns);
  const bool pass = std::all_of(query_.where.begin(), query_.where.end(), [&](const Expression& e) {
    return is_true(evaluate(e, bindings));
  });
  if (!pass) return {};
  Row values;
  for (const query::NamedExpression& value : query_.values) {
    values.push_back(evaluate(value.expression, bindings));
  }
  std::vector<Value> arguments;
  for (const query::Aggregate& aggregate : query_.aggregates) {
    for (const Expression& e : aggregate.arguments) {
      arguments.push_back(evaluate(e, bindings));
    }
  }
  return count_or_emit(std::move(values), arguments);
}

}  // namespace clew::plan
