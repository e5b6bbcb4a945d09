// SPDX-License-Identifier: Apache-2.0
// Expressions in the tracer: columns over finished aggregates, what stands behind the merge, and
// sources that fire in the tracer (tick, BEGIN, END). The judge of what probe programs compute.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "aggregate/value.h"
#include "query/query.h"

namespace clew::plan {

// Where the leaves of an expression come from. Null (std::monostate) is a value: everything that is
// computed from it is null, and a condition that is null is false.
class Bindings {
 public:
  Bindings() = default;
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;
  virtual ~Bindings() = default;

  virtual aggregate::Value field(const query::Expression& expression) = 0;
  virtual aggregate::Value input(uint16_t index) = 0;
  virtual aggregate::Value let(uint16_t index) = 0;
  virtual aggregate::Value value(uint16_t index) = 0;
  virtual aggregate::Value aggregate(uint16_t index) = 0;
  // Memory of the traced program: Load, ReadString, ReadBytes at an address.
  virtual aggregate::Value memory(const query::Expression& expression, uint64_t address) = 0;
};

// Integers are int64_t or uint64_t by the sign of the expression's type, wrapped to its width.
aggregate::Value evaluate(const query::Expression& expression, Bindings& bindings);
// True for a number that is not zero.
bool is_true(const aggregate::Value& value);
// Of all conditions.
bool are_true(const std::vector<query::Expression>& conditions, Bindings& bindings);
// The 64 bits of a number (a double is truncated); 0 for anything else.
uint64_t bits_of(const aggregate::Value& value);
// The words of a value as a probe stores it: one for numbers, zero-padded ones for text.
uint64_t hash_of_value(const aggregate::Value& value, const query::Type& type);

// LIKE: % is any run, _ any one byte, \ escapes. Linear in text times pattern.
bool matches_like(std::string_view text, std::string_view pattern);

}  // namespace clew::plan
