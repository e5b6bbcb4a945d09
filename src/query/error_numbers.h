// SPDX-License-Identifier: Apache-2.0
// The error numbers of Linux by name, so that queries can show and compare `errno` as people know
// it.
#pragma once

#include <vector>

#include "query/query.h"

namespace clew::query {

// Where a number has two names, the one that is shown comes first.
std::vector<Enumerator> error_numbers();

}  // namespace clew::query
