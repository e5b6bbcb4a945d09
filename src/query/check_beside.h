// SPDX-License-Identifier: Apache-2.0
// Whether a query can run beside something that holds the processes which it is about, and reads
// its rows as they come: only sources of the kernel see such processes without a change in them.
#pragma once

#include "base/error.h"
#include "query/diagnostic.h"

namespace clew::query {

struct Beside {
  bool has_intervals = false;  // `every`: groups have rows before the end.
};

// Errors: those of the syntax; InvalidQuery at the first source that is not of the kernel.
Expected<Beside> check_beside(const Text& text);

}  // namespace clew::query
