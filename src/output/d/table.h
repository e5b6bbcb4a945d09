// SPDX-License-Identifier: Apache-2.0
// Printed aggregations as the rows of an answer, for the formats that D shares with queries: the
// parts of the key, then a value for each aggregation (printa() joins several by their keys).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/value.h"
#include "output/d/printf.h"
#include "output/sinks.h"
#include "query/d/record.h"
#include "query/d/script.h"

namespace clew::output::d {

struct Table {
  std::vector<aggregate::Column> columns;
  std::vector<std::vector<aggregate::Value>> rows;
};

// As its expression in the script is named.
aggregate::Column column_of(const query::d::RecordField& field, aggregate::ColumnRole role);
// Of the type of its column.
aggregate::Value value_of(const Datum& datum, const target::Symbolizer& symbols);

// By position, of Script::aggregations and of `layouts`; at least one.
std::vector<aggregate::Column> columns_of(const query::d::Script& script,
                                          std::span<const query::d::KeyLayout> layouts,
                                          std::span<const uint32_t> aggregations);

struct Drawn {
  std::string text;
  std::string notes;  // For people: what the text has no place for.
};
// In a format other than text and json.
Drawn draw(const Table& table, const SinkOptions& options, const collect::Losses& losses = {});

}  // namespace clew::output::d
