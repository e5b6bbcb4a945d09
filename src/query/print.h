// SPDX-License-Identifier: Apache-2.0
// Query -> text: the normal form, which parse() reads back to an equal Query (given the same
// TypeSource; it needs no vocabulary).
#pragma once

#include <string>
#include <string_view>

#include "query/query.h"

namespace clew::query {

// Clause form, one clause a line, no final newline.
std::string print(const Query& query);
// One expression of the query, as print() writes it.
std::string print(const Expression& expression, const Query& query);
// Its clause: window tumbling 10s.
std::string print(const TimeWindow& window);
// One source: entry("m!f").
std::string print(const Source& source);

std::string_view name_of(Function function);
// "10s", "1500us": the largest unit that divides it.
std::string print_duration(uint64_t ns);
// What the query's clusters are made from, in a line.
std::string print_clusters(const Query& query);

}  // namespace clew::query
