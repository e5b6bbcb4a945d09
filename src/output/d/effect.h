// SPDX-License-Identifier: Apache-2.0
// What becomes of an action that a record has. Private to the folder.
#pragma once

#include <cstdint>
#include <span>

#include "output/d/printf.h"
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

// Whether it shows its fields, each of which is a value of the record.
bool has_values(Effect effect);

// A field as its action shows it.
Datum recorded(const query::d::RecordedAction& action, const query::d::RecordField& field,
               std::span<const uint8_t> record);

// Whether its branch was taken.
bool is_executed(const query::d::RecordedAction& action, std::span<const uint8_t> record);

}  // namespace clew::output::d
