// SPDX-License-Identifier: Apache-2.0
// The constant parameters of lquantize() and llquantize().
#pragma once

#include <cstdint>
#include <vector>

#include "query/d/check_context.h"

namespace clew::query::d::checking {

// They are taken out of the call, so that the value and its weight stay. `known` are those of the
// same aggregation's first use, or null.
Compiled<std::vector<int64_t>> take_parameters(const TypeTable& types, Node& call,
                                               AggregateFunction kind,
                                               const std::vector<int64_t>* known);

}  // namespace clew::query::d::checking
