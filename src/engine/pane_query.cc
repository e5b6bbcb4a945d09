// SPDX-License-Identifier: Apache-2.0
#include "engine/pane_query.h"

namespace clew::engine {

Expected<void> leave_to_panes(query::Query& query) {
  if (query.shape == query::Shape::Events) {
    return fail(ErrorCode::InvalidQuery,
                "single events do not go through a cluster yet: count them, in groups");
  }
  if (query.for_events) {
    return fail(ErrorCode::InvalidQuery,
                "'for N events' is counted by one session, and a cluster has several");
  }
  if (query.window)
    return fail(ErrorCode::InvalidQuery, "windows do not go through a cluster yet: use 'every'");
  query.for_ns.reset();
  query.every_ns.reset();
  return {};
}

}  // namespace clew::engine
