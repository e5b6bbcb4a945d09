// SPDX-License-Identifier: Apache-2.0
#include "output/d/table.h"

#include "abi/aggregate.h"
#include "aggregate/function.h"
#include "base/assert.h"
#include "output/d/aggregations.h"
#include "output/d/json.h"

namespace clew::output::d {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Value;
using query::d::FieldKind;

ColumnType type_of(const query::d::RecordField& field) {
  switch (field.kind) {
    case FieldKind::Integer:
      return field.is_signed ? ColumnType::Integer : ColumnType::Unsigned;
    case FieldKind::KernelStack:
    case FieldKind::UserStack:
      return ColumnType::Stack;
    case FieldKind::String:
    case FieldKind::Bytes:
    case FieldKind::KernelAddress:
    case FieldKind::UserAddress:
      return ColumnType::String;
  }
  return ColumnType::String;
}

Value counted_value(const aggregate::DValue& value) {
  if (aggregate::is_distribution(value.function)) return aggregate::histogram_of(value);
  return aggregate::number_of(value);
}

// As in the script: "@calls"; "count" of one without a name.
std::string name_of_value(const query::d::Aggregation& aggregation) {
  return aggregation.name.empty() ? abi::name_of(aggregation.function) : "@" + aggregation.name;
}

}  // namespace

Column column_of(const query::d::RecordField& field, ColumnRole role) {
  return {.name = field.text,
          .type = type_of(field),
          .role = role,
          .of_kernel = field.kind == FieldKind::KernelStack};
}

Value value_of(const Datum& datum, const target::Symbolizer& symbols) {
  switch (datum.kind) {
    case FieldKind::Integer:
      return datum.is_signed ? Value(signed_of(datum)) : Value(unsigned_of(datum));
    case FieldKind::String:
      return std::string(string_of(datum));
    case FieldKind::Bytes:
      return hex_of(datum.bytes);
    case FieldKind::KernelStack:
    case FieldKind::UserStack:
      return stack_of(datum, symbols);
    case FieldKind::KernelAddress:
    case FieldKind::UserAddress:
      return address_text(datum, symbols);
  }
  return {};
}

std::vector<Column> columns_of(const query::d::Script& script,
                               std::span<const query::d::KeyLayout> layouts,
                               std::span<const uint32_t> aggregations) {
  CLEW_ASSERT(!aggregations.empty());
  std::vector<Column> columns;
  for (const query::d::RecordField& field : layouts[aggregations[0]].fields)
    columns.push_back(column_of(field, ColumnRole::Key));
  for (const uint32_t index : aggregations) {
    const query::d::Aggregation& each = script.aggregations[index];
    const bool is_drawn = aggregate::is_distribution(each.function);
    columns.push_back({.name = name_of_value(each),
                       .type = is_drawn ? ColumnType::Histogram : ColumnType::Integer,
                       .role = ColumnRole::Aggregate,
                       .adds_up = aggregate::adds_up(each.function)});
  }
  return columns;
}

Table Aggregations::table(std::span<const uint32_t> aggregations) {
  Table table{.columns = columns_of(script_, layouts_, aggregations), .rows = {}};
  for (const Row& row : sorted_rows(aggregations)) {
    std::vector<Value>& values = table.rows.emplace_back();
    for (const Datum& datum : row.key_data)
      values.push_back(d::value_of(datum, symbols_));
    for (size_t i = 0; i < aggregations.size(); ++i)
      values.push_back(counted_value(value_of(aggregations[i], row.cells[i])));
  }
  if (!table.rows.empty()) mark_printed(aggregations);
  return table;
}

Drawn draw(const Table& table, const SinkOptions& options, const collect::Losses& losses) {
  StringSink bytes;
  StringSink notes;
  const std::unique_ptr<RowSink> sink = make_sink(options, bytes, notes);
  sink->begin(table.columns, RowMode::Table);
  for (const auto& row : table.rows)
    sink->row(row);
  sink->finish(losses);
  sink->flush();
  return {.text = bytes.take(), .notes = notes.take()};
}

}  // namespace clew::output::d
