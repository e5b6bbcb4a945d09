// SPDX-License-Identifier: Apache-2.0
#include "answer/group.h"

#include <algorithm>
#include <bit>
#include <variant>

#include "answer/columns.h"
#include "base/assert.h"
#include "plan/evaluate.h"

namespace clew::answer {
namespace {

using aggregate::Value;

bool is_null(const Value& value) {
  return std::holds_alternative<std::monostate>(value);
}

// A float or a double as it is in memory.
uint64_t counted_bits(const Value& value, bool is_real) {
  return is_real ? std::bit_cast<uint64_t>(std::get<double>(value)) : plan::bits_of(value);
}

void add_to(std::span<uint64_t> cell, const aggregate::AggregateSpec& spec,
            const query::Aggregate& aggregate, const Value* argument) {
  if (aggregate.function == abi::AggregateFunction::Distinct) {
    CLEW_ASSERT(argument != nullptr);
    CLEW_ASSERT(!aggregate.arguments.empty());
    aggregate::add_distinct(cell, plan::hash_of_value(*argument, aggregate.arguments[0].type));
  } else {
    aggregate::add(spec, cell, argument == nullptr ? 0 : counted_bits(*argument, spec.is_real));
  }
}

}  // namespace

Group::Group(const query::Query& query, Decoder& decoder, Nulls nulls)
    : query_(query), decoder_(decoder), nulls_(nulls), counted_(schema_of(query)) {
  key_.resize(counted_.schema().keys.size());
  cells_.resize(counted_.schema().cell_words());
  CLEW_ASSERT(counted_.schema().aggregates.size() == query_.aggregates.size());
}

void Group::take(RowBatch& rows) {
  for (size_t i = 0; i < rows.size(); ++i)
    count(rows.at(i));
}

void Group::count(std::span<const Value> row) {
  const size_t keys = query_.values.size();
  CLEW_ASSERT(row.size() >= keys);
  CLEW_ASSERT(key_.size() >= keys);
  const std::span<const Value> arguments = row.subspan(keys);
  const bool has_null = std::any_of(arguments.begin(), arguments.end(), is_null);
  if (has_null && nulls_ == Nulls::LeaveRowOut) return;
  std::copy_n(row.begin(), keys, key_.begin());
  std::fill(cells_.begin(), cells_.end(), 0);
  size_t word = 0;
  size_t argument = 0;
  size_t top = keys;
  for (size_t i = 0; i < query_.aggregates.size(); ++i) {
    const query::Aggregate& aggregate = query_.aggregates[i];
    const aggregate::AggregateSpec& spec = counted_.schema().aggregates[i].spec;
    const size_t count = aggregate::cell_words(spec);
    CLEW_ASSERT(aggregate.arguments.empty() || argument < arguments.size());
    CLEW_ASSERT(word + count <= cells_.size());
    const Value* const value = aggregate.arguments.empty() ? nullptr : &arguments[argument++];
    if (aggregate.function == abi::AggregateFunction::TopK) {
      CLEW_ASSERT(value != nullptr);
      CLEW_ASSERT(top < key_.size());
      Value& counted = key_[top++];
      counted = *value;
      decoder_.make_key(counted, aggregate.arguments[0].type);
      name_enumerator(query_, counted, aggregate.arguments[0].type);
    }
    const bool is_left_out = value != nullptr && is_null(*value);
    if (!is_left_out) add_to(std::span(cells_).subspan(word, count), spec, aggregate, value);
    word += count;
  }
  CLEW_ASSERT(word == cells_.size());
  CLEW_ASSERT(argument == arguments.size());  // No value stands for another.
  CLEW_ASSERT(top == key_.size());
  counted_.add(key_, cells_);
  ++passed_;
}

}  // namespace clew::answer
