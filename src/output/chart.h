// SPDX-License-Identifier: Apache-2.0
// A bar chart of a table: its rows, with a bar for the first number that was counted. Where some
// are negative a | stands at 0, between their bars and the others. Private to the folder.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "aggregate/value.h"

namespace clew::output {

// False when there is no numeric column, or a histogram, which is a drawing already.
[[nodiscard]] bool can_chart(std::span<const aggregate::Column> columns);
[[nodiscard]] std::string format_chart(std::span<const aggregate::Column> columns,
                                       std::span<const std::vector<aggregate::Value>> rows);

}  // namespace clew::output
