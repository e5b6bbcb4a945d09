// SPDX-License-Identifier: Apache-2.0
// When a query ends and when it answers: what the request says goes before what its text says.
#pragma once

#include "base/error.h"
#include "engine/run.h"
#include "query/query.h"

namespace clew::engine {

// Where its panes are taken (session/pane_taker.h) whoever takes them says both. InvalidQuery: the
// two contradict each other, or the query cannot be answered so.
Expected<void> set_ends(const Request& request, query::Query& query);

}  // namespace clew::engine
