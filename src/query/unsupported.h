// SPDX-License-Identifier: Apache-2.0
// What the language has and this version does not run. One place, so that each later version only
// deletes from it.
#pragma once

#include "base/error.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::query {

bool is_unsupported(const Source& source);
// "… is not part of this version yet" at the source.
tl::unexpected<Error> fail_unsupported(const Reporter& report, const Source& source);

// An error at the first part of the query that this version cannot run: sources of other
// machines, joins with groups, floating-point keys and aggregates.
Expected<void> check_supported(const Query& query, const Reporter& report);

// Those that say how a value is shown, and stand in columns only.
constexpr bool is_format(Function function) {
  return function == Function::Hex || function == Function::Print;
}
// Whether a node itself can only be computed in the tracer: floating-point arithmetic, formats.
bool runs_in_tracer_only(const Expression& expression);

}  // namespace clew::query
