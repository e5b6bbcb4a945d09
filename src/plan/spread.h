// SPDX-License-Identifier: Apache-2.0
// What of a query over several machines is done on each, and what where their answers come
// together. Who sends and who receives say the same of the same query.
#pragma once

#include "query/query.h"

namespace clew::plan {

// Whether the joins by time, of all its queries, are of events of one machine each: `host` is among
// their keys, on both sides. They run there.
bool joins_within_hosts(const query::Query& query);

// Whether each machine sends the rows of single events, and not groups: its own, those of joins
// that run there, or, of joins between machines, what is joined (plan::Joined::events).
bool sends_events(const query::Query& query);

// Whether what is sent is joined where it arrives.
inline bool joins_between_hosts(const query::Query& query) {
  return query::joins_by_time(query) && !joins_within_hosts(query);
}

}  // namespace clew::plan
