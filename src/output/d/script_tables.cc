// SPDX-License-Identifier: Apache-2.0
#include "output/d/script_tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "abi/aggregate.h"
#include "base/assert.h"
#include "base/clock_ns.h"
#include "output/d/effect.h"
#include "output/d/table.h"

namespace clew::output::d {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Value;

ScriptTables::ScriptTables(const query::d::Script& script,
                           std::span<const query::d::RecordLayout> records,
                           std::span<const query::d::KeyLayout> keys, RowSink& sink)
    : sink_(sink), begin_ns_(clock_ns(CLOCK_REALTIME)) {
  for (const bool is_named : {true, false}) {
    for (uint32_t i = 0; i < script.aggregations.size(); ++i) {
      const query::d::Aggregation& each = script.aggregations[i];
      if (each.is_used && each.name.empty() != is_named) add_aggregation(script, keys, i);
    }
  }
  for (uint32_t i = 0; i < records.size(); ++i) {
    if (records[i].size_bytes != 0) add_clause(records[i], i);
  }
  sink_.begin_tables(shapes_);
}

void ScriptTables::add_aggregation(const query::d::Script& script,
                                   std::span<const query::d::KeyLayout> keys, uint32_t index) {
  const query::d::Aggregation& aggregation = script.aggregations[index];
  const std::string name =
      aggregation.name.empty() ? abi::name_of(aggregation.function) : aggregation.name;
  std::vector<Column> columns = columns_of(script, keys, {&index, 1});
  columns.back().name = name;  // Without the @, which SQL would want in quotes.
  of_aggregation_[index] = shapes_.size();
  shapes_.push_back(
      {.name = free_name(name), .columns = std::move(columns), .mode = RowMode::Table});
}

// Aggregations without a name, and clauses, make way for those that have one.
std::string ScriptTables::free_name(std::string name) const {
  const auto is_taken = [&](const TableShape& shape) { return shape.name == name; };
  while (std::any_of(shapes_.begin(), shapes_.end(), is_taken))
    name += '_';
  return name;
}

void ScriptTables::add_clause(const query::d::RecordLayout& layout, uint32_t index) {
  std::vector<Column> columns = {{.name = "time", .type = ColumnType::Time},
                                 {.name = "cpu", .type = ColumnType::Unsigned},
                                 {.name = "probe", .type = ColumnType::String}};
  for (const query::d::RecordedAction& action : layout.actions) {
    if (!has_values(effect_of(action.action))) continue;
    for (const query::d::RecordField& field : action.fields)
      columns.push_back(column_of(field, ColumnRole::Plain));
  }
  columns.push_back({.name = "text", .type = ColumnType::String});
  of_clause_[index] = shapes_.size();
  shapes_.push_back({.name = free_name(fmt::format("clause_{}", index)),
                     .columns = std::move(columns),
                     .mode = RowMode::Stream});
}

void ScriptTables::add_record(const abi::MachineRecordHeader& header, const ProbeNames& probe,
                              std::vector<Value> values, std::string text) {
  const auto table = of_clause_.find(header.clause);
  CLEW_ASSERT(table != of_clause_.end());
  std::vector<Value> row = {
      static_cast<int64_t>(header.time_ns + wall_offset_ns_), uint64_t{header.cpu},
      fmt::format("{}:{}:{}:{}", probe.provider, probe.module, probe.function, probe.name)};
  std::move(values.begin(), values.end(), std::back_inserter(row));
  row.emplace_back(std::move(text));
  sink_.choose(table->second);
  sink_.row(row);
}

void ScriptTables::add_rows(uint32_t aggregation, const Table& table) {
  const auto chosen = of_aggregation_.find(aggregation);
  CLEW_ASSERT(chosen != of_aggregation_.end());
  sink_.choose(chosen->second);
  for (const std::vector<Value>& row : table.rows)
    sink_.row(row);
  sink_.end_interval(
      {.number = ++intervals_, .begin_ns = begin_ns_, .end_ns = clock_ns(CLOCK_REALTIME)});
}

}  // namespace clew::output::d
