// SPDX-License-Identifier: Apache-2.0
#include "aggregate/table.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace clew::aggregate {

uint32_t TableSchema::cell_words() const {
  uint32_t total = 0;
  for (const AggregateColumn& column : aggregates)
    total += aggregate::cell_words(column.spec);
  return total;
}

std::vector<Column> TableSchema::columns() const {
  std::vector<Column> result = keys;
  for (const AggregateColumn& column : aggregates) {
    result.push_back({.name = column.name,
                      .type = result_type(column.spec),
                      .unit = column.spec.unit,
                      .approximate = approximate(column.spec),
                      .role = ColumnRole::Aggregate});
  }
  return result;
}

namespace {

void merge_cells(const TableSchema& schema, std::span<uint64_t> into,
                 std::span<const uint64_t> from) {
  CLEW_ASSERT(into.size() == from.size());
  size_t at = 0;
  for (const AggregateColumn& column : schema.aggregates) {
    const size_t size = cell_words(column.spec);
    CLEW_ASSERT(at + size <= into.size());
    merge(column.spec, into.subspan(at, size), from.subspan(at, size));
    at += size;
  }
  CLEW_ASSERT(at == into.size());
}

void subtract_cells(const TableSchema& schema, std::span<uint64_t> from,
                    std::span<const uint64_t> earlier) {
  CLEW_ASSERT(from.size() == earlier.size());
  size_t at = 0;
  for (const AggregateColumn& column : schema.aggregates) {
    const size_t size = cell_words(column.spec);
    CLEW_ASSERT(at + size <= from.size());
    subtract(column.spec, from.subspan(at, size), earlier.subspan(at, size));
    at += size;
  }
  CLEW_ASSERT(at == from.size());
}

bool all_zero(std::span<const uint64_t> words) {
  return std::all_of(words.begin(), words.end(), [](uint64_t word) { return word == 0; });
}

}  // namespace

bool KeyLess::operator()(const Key& a, const Key& b) const {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const int order = compare(a[i], b[i]); order != 0) return order < 0;
  }
  return a.size() < b.size();
}

void Table::add(const Key& key, std::span<const uint64_t> cells) {
  CLEW_ASSERT(key.size() == schema_.keys.size());
  CLEW_ASSERT(cells.size() == schema_.cell_words());
  std::vector<uint64_t>& row = cells_[key];
  CLEW_ASSERT(row.empty() || row.size() == cells.size());
  row.resize(cells.size());
  merge_cells(schema_, row, cells);
}

bool Table::append(Key key, std::vector<uint64_t> cells) {
  CLEW_ASSERT(key.size() == schema_.keys.size());
  CLEW_ASSERT(cells.size() == schema_.cell_words());
  const bool is_last = cells_.empty() || cells_.key_comp()(cells_.rbegin()->first, key);
  if (is_last) cells_.emplace_hint(cells_.end(), std::move(key), std::move(cells));
  return is_last;
}

Expected<void> Table::merge(const Table& other) {
  CLEW_ASSERT(&other != this);
  if (schema_ != other.schema_) {
    return fail(ErrorCode::InvalidQuery, "tables of different queries cannot be merged");
  }
  for (const auto& [key, cells] : other.cells_)
    add(key, cells);
  losses.merge(other.losses);
  return {};
}

Table Table::since(const Table& earlier) const {
  CLEW_ASSERT(schema_ == earlier.schema_);
  Table difference(schema_);
  difference.losses = losses;
  difference.interval = interval;
  for (const auto& [key, cells] : cells_) {
    std::vector<uint64_t> left = cells;
    const auto before = earlier.cells_.find(key);
    if (before != earlier.cells_.end()) subtract_cells(schema_, left, before->second);
    if (!all_zero(left)) difference.cells_.emplace(key, std::move(left));
  }
  return difference;
}

namespace {

struct ValueLess {
  bool operator()(const Value& a, const Value& b) const { return compare(a, b) < 0; }
};
using CountByValue = std::map<Value, uint64_t, ValueLess>;

// Keys are never lists.
Scalar scalar_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* stack = std::get_if<Stack>(&value)) return text_of(*stack);
  return {};
}

// What rows with the same other keys come to.
struct Folded {
  std::vector<CountByValue> tops;  // For each TopK.
  std::vector<uint64_t> cells;
};

TopList largest(const CountByValue& counts, size_t count_max) {
  TopList list;
  for (const auto& [value, count] : counts)
    list.items.push_back({.value = scalar_of(value), .count = count});
  std::stable_sort(list.items.begin(), list.items.end(),
                   [](const TopItem& a, const TopItem& b) { return a.count > b.count; });
  if (list.items.size() > count_max) list.items.resize(count_max);
  return list;
}

void fold(const TableSchema& schema, std::span<const Value> top_values,
          std::span<const uint64_t> cells, Folded& into) {
  into.cells.resize(cells.size());
  into.tops.resize(top_values.size());
  merge_cells(schema, into.cells, cells);
  size_t at = 0;
  size_t top = 0;
  for (const AggregateColumn& column : schema.aggregates) {
    if (column.spec.function == AggregateFunction::TopK) {
      CLEW_ASSERT(top < top_values.size());
      into.tops[top][top_values[top]] += cells[at];
      ++top;
    }
    at += cell_words(column.spec);
  }
  CLEW_ASSERT(at == cells.size());
  CLEW_ASSERT(top == top_values.size());  // Each TopK has its key.
}

void finish_folded(const TableSchema& schema, const Folded& folded, Row& row) {
  size_t at = 0;
  size_t top = 0;
  for (const AggregateColumn& column : schema.aggregates) {
    const size_t size = cell_words(column.spec);
    if (column.spec.function == AggregateFunction::TopK) {
      CLEW_ASSERT(top < folded.tops.size());
      row.emplace_back(largest(folded.tops[top++], column.spec.count_max));
    } else {
      row.push_back(finish(column.spec, std::span(folded.cells).subspan(at, size)));
    }
    at += size;
  }
  CLEW_ASSERT(at == folded.cells.size());
}

}  // namespace

std::vector<Row> Table::fold_top(size_t first_top_key) const {
  CLEW_ASSERT(first_top_key <= schema_.keys.size());
  std::map<Key, Folded, KeyLess> groups;
  for (const auto& [key, cells] : cells_) {
    const auto first_top = key.begin() + static_cast<std::ptrdiff_t>(first_top_key);
    fold(schema_, std::span(first_top, key.end()), cells, groups[Key(key.begin(), first_top)]);
  }
  std::vector<Row> rows;
  for (const auto& [key, folded] : groups) {
    rows.push_back(key);
    finish_folded(schema_, folded, rows.back());
  }
  return rows;
}

std::vector<Row> Table::rows() const {
  std::vector<Row> result;
  result.reserve(cells_.size());
  for (const auto& [key, cells] : cells_) {
    Row row = key;
    size_t at = 0;
    for (const AggregateColumn& column : schema_.aggregates) {
      const size_t size = aggregate::cell_words(column.spec);
      row.push_back(finish(column.spec, std::span(cells).subspan(at, size)));
      at += size;
    }
    CLEW_ASSERT(at == cells.size());
    CLEW_ASSERT(row.size() == schema_.keys.size() + schema_.aggregates.size());
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace clew::aggregate
