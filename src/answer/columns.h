// SPDX-License-Identifier: Apache-2.0
// What the columns of an answer, and of the tables before it, are.
#pragma once

#include <vector>

#include "aggregate/table.h"
#include "aggregate/value.h"
#include "query/query.h"

namespace clew::answer {

// Of a table of the query's groups: its values, what top-k counts, the cells of its aggregates.
aggregate::TableSchema schema_of(const query::Query& query);
// Of its rows.
std::vector<aggregate::Column> columns_of(const query::Query& query);

// Of one value of events.
aggregate::Column column_of(const query::Input& input);

// The key that top-k counts stands behind the query's values. False: no aggregate is one.
bool has_top(const query::Query& query);

// The enumerator's name for a value of an enumeration; last, since conditions compare numbers.
void name_enumerator(const query::Query& query, aggregate::Value& value, const query::Type& type);

}  // namespace clew::answer
