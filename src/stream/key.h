// SPDX-License-Identifier: Apache-2.0
// The first key of a row: the number of a pane in what comes in, a time in what goes out.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "aggregate/table.h"
#include "base/assert.h"

namespace clew::stream {

inline int64_t number_in(const aggregate::Key& key) {
  CLEW_ASSERT(!key.empty());
  if (const auto* number = std::get_if<uint64_t>(&key[0])) return static_cast<int64_t>(*number);
  const auto* number = std::get_if<int64_t>(&key[0]);
  return number == nullptr ? INT64_MIN : *number;  // No pane of ours.
}

inline aggregate::Key with_number(aggregate::Key key, int64_t number) {
  CLEW_ASSERT(!key.empty());
  key[0] = number;
  return key;
}

}  // namespace clew::stream
