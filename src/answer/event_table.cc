// SPDX-License-Identifier: Apache-2.0
#include "answer/event_table.h"

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "answer/columns.h"
#include "base/assert.h"

namespace clew::answer {
namespace {

using aggregate::ColumnType;
using aggregate::Key;
using aggregate::Value;
using query::TypeKind;

uint64_t any_number() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

aggregate::TableSchema schema_of(const query::Query& query, size_t width) {
  aggregate::TableSchema schema = answer::schema_of(query);
  schema.aggregates.clear();
  schema.keys.resize(width);
  schema.keys.insert(schema.keys.begin(), {{.name = "time", .type = ColumnType::Time},
                                           {.name = "session", .type = ColumnType::Unsigned},
                                           {.name = "number", .type = ColumnType::Unsigned}});
  return schema;
}

size_t bytes_of(const Value& value) {
  constexpr size_t kWord = 9;
  if (const auto* const text = std::get_if<std::string>(&value)) return kWord + text->size();
  const auto* const stack = std::get_if<aggregate::Stack>(&value);
  if (stack == nullptr) return kWord;
  size_t bytes = kWord;
  for (const aggregate::Frame& frame : stack->frames) {
    constexpr size_t kNumbers = 33;
    bytes += kNumbers + frame.symbol.size() + frame.module.size() + frame.file.size();
  }
  return bytes;
}

// Wraps: a program can say any time.
int64_t ahead(const Value& time, int64_t by_ns) {
  const auto* const ns = std::get_if<int64_t>(&time);
  const auto* const whole = std::get_if<uint64_t>(&time);
  const uint64_t bits = ns != nullptr ? static_cast<uint64_t>(*ns) : whole != nullptr ? *whole : 0;
  return static_cast<int64_t>(bits + static_cast<uint64_t>(by_ns));
}

// Whether operators can work with it where they expect this type.
bool fits(const Value& value, const query::Type& type) {
  if (std::holds_alternative<std::monostate>(value)) return true;
  switch (type.kind) {
    case TypeKind::Integer:
      return std::holds_alternative<int64_t>(value) || std::holds_alternative<uint64_t>(value);
    case TypeKind::Float:
      return std::holds_alternative<double>(value);
    case TypeKind::String:
    case TypeKind::Bytes:
    case TypeKind::Symbol:
      return std::holds_alternative<std::string>(value);
    case TypeKind::Stack:
      return std::holds_alternative<aggregate::Stack>(value);
  }
  return false;
}

bool fits(const Key& key, const query::Query& query) {
  if (key.size() != kEventOwnKeys + query.values.size()) return false;
  for (size_t i = 0; i < query.values.size(); ++i) {
    if (!fits(key[kEventOwnKeys + i], query.values[i].expression.type)) return false;
  }
  return true;
}

}  // namespace

EventTable::EventTable(const query::Query& query, EventLayout layout, int64_t ahead_ns,
                       EventLimits limits)
    : layout_(layout),
      limits_(limits),
      ahead_ns_(ahead_ns),
      session_(any_number()),
      table_(schema_of(query, layout.width)) {
  CLEW_ASSERT(layout.width <= query.values.size());
  for (const query::NamedExpression& value : query.values)
    are_times_.push_back(value.expression.type.unit == query::Unit::Timestamp);
}

void EventTable::add(RowBatch& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (limits_.rows && number_ >= *limits_.rows) break;
    add(rows.at(i));
  }
  rows.clear();
}

void EventTable::add(std::span<Value> row) {
  constexpr size_t kOwn = 27;
  size_t bytes = kOwn;
  for (size_t i = 0; i < layout_.width; ++i)
    bytes += bytes_of(row[i]);
  if (bytes_ + bytes > limits_.bytes) {
    ++dropped_;
    return;
  }
  bytes_ += bytes;
  const int64_t time = layout_.time ? ahead(row[*layout_.time], ahead_ns_) : 0;
  Key key;
  key.reserve(kEventOwnKeys + layout_.width);
  key.emplace_back(time);
  key.emplace_back(session_);
  key.emplace_back(++number_);
  for (size_t i = 0; i < layout_.width; ++i) {
    const bool is_time = are_times_[i] && !std::holds_alternative<std::monostate>(row[i]);
    if (is_time) row[i] = ahead(row[i], ahead_ns_);
    key.push_back(std::move(row[i]));
  }
  // Most come in the order of their times.
  const bool is_last = table_.size() == 0 || time >= last_ns_;
  if (!is_last) return table_.add(key, {});
  last_ns_ = time;
  const bool is_added = table_.append(std::move(key), {});
  CLEW_ASSERT(is_added);
}

aggregate::Table EventTable::take() {
  bytes_ = 0;
  aggregate::Table empty(table_.schema());
  return std::exchange(table_, std::move(empty));
}

Expected<void> give_events(const aggregate::Table& table, const query::Query& query,
                           const std::function<void(RowBatch&)>& take) {
  const bool are_its = table.schema().aggregates.empty() &&
                       std::all_of(table.cells().begin(), table.cells().end(),
                                   [&query](const auto& row) { return fits(row.first, query); });
  if (!are_its) return fail(ErrorCode::Refused, "its events are not as the nodes have said");
  RowBatch rows(query.values.size());
  for (const auto& [key, cells] : table.cells()) {
    std::copy(key.begin() + kEventOwnKeys, key.end(), rows.add().begin());
    if (rows.size() < RowBatch::kRowsUsual) continue;
    take(rows);
    rows.clear();
  }
  if (!rows.empty()) take(rows);
  return {};
}

}  // namespace clew::answer
