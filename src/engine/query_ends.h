// SPDX-License-Identifier: Apache-2.0
// When a query ends and when it answers: what the request says goes before what its text says.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/run.h"
#include "query/query.h"

namespace clew::engine {

// Why k-means gives no answer for each interval.
inline constexpr const char* kClustersOfAll =
    "clusters are of all intervals at once: 'every' has no meaning for them, and windows in the "
    "query that is clustered do";

// Where its panes are taken (session/pane_taker.h) whoever takes them says both. InvalidQuery: the
// two contradict each other, or the query cannot be answered so.
Expected<void> set_ends(const Request& request, query::Query& query);

// What to say where no process is named.
std::string no_process(const Request& request);

}  // namespace clew::engine
