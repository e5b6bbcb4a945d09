// SPDX-License-Identifier: Apache-2.0
// What becomes of an action that a record has. Private to the folder.
#pragma once

#include <cstdint>
#include <span>

#include "query/d/record.h"

namespace clew::output::d {

enum class Effect : uint8_t {
  None,          // Done where the probe fired, or nothing to print.
  Text,          // Each field as trace() and its kin print it.
  Memory,        // tracemem
  Printed,       // print
  Formatted,     // printf
  Aggregations,  // printa
  Change,        // Of aggregations.
  Host,
};

Effect effect_of(query::d::Action action);

// Whether its branch was taken.
bool is_executed(const query::d::RecordedAction& action, std::span<const uint8_t> record);

}  // namespace clew::output::d
