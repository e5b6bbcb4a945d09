// SPDX-License-Identifier: Apache-2.0
// What a column is, in the words that files of several formats have for it. Private to the folder.
#pragma once

#include "aggregate/value.h"

namespace clew::output {

[[nodiscard]] const char* name_of(aggregate::ColumnType type);
[[nodiscard]] const char* name_of(aggregate::Unit unit);  // None: "".
[[nodiscard]] const char* name_of(aggregate::ColumnRole role);

}  // namespace clew::output
