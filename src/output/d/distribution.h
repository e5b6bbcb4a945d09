// SPDX-License-Identifier: Apache-2.0
// Tables of quantize(), lquantize() and llquantize() as D has them: counts are weights, which may
// be negative, and normalize() divides them.
#pragma once

#include <string>

#include "aggregate/d_value.h"
#include "output/format.h"

namespace clew::output::d {

// The table, which begins with an empty line. `zooms`: option aggzoom.
inline void append_distribution(const aggregate::DValue& value, bool zooms, std::string& out) {
  out += format_histogram(histogram_of(value),
                          {.has_weights = true, .zooms = zooms, .divisor = value.divisor});
}

}  // namespace clew::output::d
