// SPDX-License-Identifier: Apache-2.0
// The answer of a query, whole or partial: cells by key, and what is missing. Tables of many
// processes, nodes and intervals merge into one; `finish` turns cells into values. Keys are values
// (names, not ids of one process), so that tables from anywhere can be merged.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aggregate/function.h"
#include "base/error.h"
#include "collect/losses.h"

namespace clew::aggregate {

struct AggregateColumn {
  std::string name{};
  AggregateSpec spec{};
  bool operator==(const AggregateColumn&) const = default;
};

struct TableSchema {
  std::vector<Column> keys{};
  std::vector<AggregateColumn> aggregates{};  // Their cells lie side by side in this order.
  [[nodiscard]] uint32_t cell_words() const;
  // Keys, then aggregates.
  [[nodiscard]] std::vector<Column> columns() const;
  bool operator==(const TableSchema&) const = default;
};

using Key = std::vector<Value>;  // Scalars and strings only.
using Row = std::vector<Value>;  // Keys, then finished aggregates.

// Lexicographic, by `compare`.
struct KeyLess {
  bool operator()(const Key& a, const Key& b) const;
};
using CellsByKey = std::map<Key, std::vector<uint64_t>, KeyLess>;

class Table {
 public:
  explicit Table(TableSchema schema) : schema_(std::move(schema)) {}

  // Merges `cells` (schema.cell_words() words) into the row of `key`.
  void add(const Key& key, std::span<const uint64_t> cells);
  // A row behind all others; false, and nothing done, when `key` is not above their keys.
  bool append(Key key, std::vector<uint64_t> cells);
  // InvalidQuery when the schemas differ. Losses are merged as well.
  Expected<void> merge(const Table& other);
  // This table minus an earlier one of the same stream; rows without any change are left out.
  // Every aggregate must be subtractable.
  [[nodiscard]] Table since(const Table& earlier) const;
  // Finishes rows with TopK aggregates. The keys from `first_top_key` on are the values that these
  // count, in the order of the aggregates. Rows that differ only there become one: its other keys,
  // then all aggregates, with a TopList for each TopK.
  [[nodiscard]] std::vector<Row> fold_top(size_t first_top_key) const;

  // Finished rows, in ascending order of key.
  [[nodiscard]] std::vector<Row> rows() const;
  [[nodiscard]] size_t size() const { return cells_.size(); }
  [[nodiscard]] const TableSchema& schema() const { return schema_; }
  [[nodiscard]] const CellsByKey& cells() const { return cells_; }

  collect::Losses losses;
  uint64_t interval = 0;  // 0 = the whole session.

  bool operator==(const Table&) const = default;

 private:
  TableSchema schema_;
  CellsByKey cells_;
};

struct Order {
  size_t column = 0;
  bool descending = false;
};
// `orderby`: stable sort by values; null first, numbers before strings, histograms by their total.
void sort_rows(std::vector<Row>& rows, std::span<const Order> orders);
// -1, 0, 1. Integers of both signs and doubles compare by their mathematical value.
[[nodiscard]] int compare(const Value& a, const Value& b);

}  // namespace clew::aggregate
