// SPDX-License-Identifier: Apache-2.0
// A query whose groups are taken by panes (session/pane_taker.h).
#pragma once

#include "base/error.h"
#include "query/query.h"

namespace clew::engine {

// Whoever takes the panes says when it ends, so the query does not. InvalidQuery: it has no groups,
// or an end that only a session alone can see.
Expected<void> leave_to_panes(query::Query& query);

}  // namespace clew::engine
