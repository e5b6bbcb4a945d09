// SPDX-License-Identifier: Apache-2.0
// Expression -> text that reads back to the same expression: constants carry their type, and every
// conversion is a cast.
#pragma once

#include <string>
#include <string_view>

#include "query/query.h"

namespace clew::query {

std::string print_expression(const Expression& expression, const Query& query);
// As a key of a join, which is no comparison.
std::string print_join_key(const Expression& expression, const Query& query);
// The same of outstanding(…), with bare field names.
std::string print_outstanding_key(const Expression& expression, const Query& query);
// The same with bare field names, as exports have them.
std::string print_bare(const Expression& expression, const Query& query);

std::string print_string(std::string_view text);  // Quoted, with escapes.
std::string input_name(const std::vector<Input>& inputs, size_t index);

}  // namespace clew::query
