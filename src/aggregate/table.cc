// SPDX-License-Identifier: Apache-2.0
#include "aggregate/table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

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
                      .aggregated = true});
  }
  return result;
}

namespace {

void merge_cells(const TableSchema& schema, std::span<uint64_t> into,
                 std::span<const uint64_t> from) {
  size_t at = 0;
  for (const AggregateColumn& column : schema.aggregates) {
    const size_t size = cell_words(column.spec);
    merge(column.spec, into.subspan(at, size), from.subspan(at, size));
    at += size;
  }
}

void subtract_cells(const TableSchema& schema, std::span<uint64_t> from,
                    std::span<const uint64_t> earlier) {
  size_t at = 0;
  for (const AggregateColumn& column : schema.aggregates) {
    const size_t size = cell_words(column.spec);
    subtract(column.spec, from.subspan(at, size), earlier.subspan(at, size));
    at += size;
  }
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
  row.resize(cells.size());
  merge_cells(schema_, row, cells);
}

Expected<void> Table::merge(const Table& other) {
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

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::to_string(*number);
  if (const auto* number = std::get_if<uint64_t>(&value)) return fmt::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::to_string(*number);
  return "null";
}

void keep_largest(TopList& list, size_t count_max) {
  std::sort(list.items.begin(), list.items.end(), [](const TopItem& a, const TopItem& b) {
    return a.count != b.count ? a.count > b.count : a.name < b.name;
  });
  if (list.items.size() > count_max) list.items.resize(count_max);
}

}  // namespace

std::vector<Row> Table::fold_top(size_t key_index) const {
  CLEW_ASSERT(key_index < schema_.keys.size());
  CLEW_ASSERT(schema_.aggregates.size() == 1);
  CLEW_ASSERT(schema_.aggregates[0].spec.function == AggregateFunction::TopK);
  std::map<Key, TopList, KeyLess> lists;
  for (const auto& [key, cells] : cells_) {
    Key rest = key;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(key_index));
    lists[std::move(rest)].items.push_back({.name = text_of(key[key_index]), .count = cells[0]});
  }
  std::vector<Row> rows;
  for (auto& [key, list] : lists) {
    keep_largest(list, schema_.aggregates[0].spec.count_max);
    rows.push_back(key);
    rows.back().emplace_back(std::move(list));
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
    result.push_back(std::move(row));
  }
  return result;
}

Expected<bool> PartialMerge::add(const PartialId& id, const Table& partial) {
  if (seen_.contains(id)) return false;
  CLEW_TRY(table_.merge(partial));
  seen_.insert(id);
  return true;
}

}  // namespace clew::aggregate
