// SPDX-License-Identifier: Apache-2.0
// What a name or an expression of the syntax tree stands for while a query is analysed. A query is
// evaluated symbolically: variables are bound to Values, so that nested selects, lambdas and named
// queries vanish and only typed expressions over events remain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "query/c_types.h"
#include "query/query.h"

namespace clew::query {

struct NamedValue;

struct Value {
  enum class Kind : uint8_t {
    Scalar,          // `expression`, and its C type if known
    Place,           // A C record or array in memory: `expression` is its address
    Registers,       // A C record in one or two registers: `members`, from `offset_bytes` on
    Event,           // Of `stream`
    Arguments,       // event.args
    Entry,           // event.entry
    EntryArguments,  // event.entry.args
    Record,          // members
    Group,           // members: Key, and the element that is grouped (its name is empty)
    Deadline,        // Now + `deadline_ns`
    State,           // The state of an extension, which a query passes on and never looks at.
  };
  Kind kind = Kind::Scalar;
  Expression expression;
  CTypeRef c_type;
  // arg0 and retval add bytes even where they are known to be pointers: whether debug information
  // is there must not change what e.arg0 + 8 means.
  bool adds_bytes = false;
  uint16_t stream = 0;
  int source = -1;  // Of the stream; -1 = any.
  int64_t deadline_ns = 0;
  uint64_t offset_bytes = 0;  // Registers: of a record in the one that they hold.
  std::vector<NamedValue> members;

  bool operator==(const Value&) const = default;
};

struct NamedValue {
  std::string name;
  Value value;

  bool operator==(const NamedValue&) const = default;
};

// Names in reach; the last one of a name wins.
using Names = std::vector<NamedValue>;

inline Value scalar_value(Expression expression, CTypeRef c_type = {}) {
  Value value;
  value.expression = std::move(expression);
  value.c_type = c_type;
  return value;
}

inline Value value_of_kind(Value::Kind kind) {
  Value value;
  value.kind = kind;
  return value;
}

// The member of that name: exact, else not counting case; null when there is none.
const Value* find_member(const std::vector<NamedValue>& members, std::string_view name);

}  // namespace clew::query
