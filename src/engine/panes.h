// SPDX-License-Identifier: Apache-2.0
// A query whose panes somebody takes (Request::panes), to put together what several machines say:
// what is different from one that is answered here.
#pragma once

#include <cstdint>
#include <optional>

#include "answer/event_table.h"
#include "plan/joined.h"
#include "query/query.h"

namespace clew::engine {

// Times that go to others are those of the time of day, which is the monotonic clock + `ahead_ns`;
// events say theirs. Before the query is taken apart.
void prepare_for_panes(query::Query& query, int64_t ahead_ns);

// How single events go there, if they do, as the sources give them or as they were joined here.
// `query`: as it was prepared, `joined`: what it was taken apart into, or null.
std::optional<answer::EventLayout> event_layout(const query::Query& query, plan::Joined* joined,
                                                int64_t ahead_ns);

}  // namespace clew::engine
