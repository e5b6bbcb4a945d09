// SPDX-License-Identifier: Apache-2.0
// `including open`: what a query may ask of a call that has not returned.
#pragma once

#include "base/error.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::query {

// Errors: InvalidQuery, at its place, for what nobody knows of such a call.
Expected<void> check_open_calls(const Query& query, const Reporter& report);

}  // namespace clew::query
