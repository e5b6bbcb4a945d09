// SPDX-License-Identifier: Apache-2.0
#include "engine/panes.h"

#include "plan/spread.h"
#include "query/arithmetic.h"
#include "query/window.h"

namespace clew::engine {

// Groups are made of what probes count, so times are put ahead there. Those of rows are in the
// tracer's hands (answer/event_table.h).
void prepare_for_panes(query::Query& query, int64_t ahead_ns) {
  if (!query.joins.empty()) return;
  if (query.shape == query::Shape::Groups) return query::set_times_ahead(query, ahead_ns);
  query.values.push_back(
      {.name = "", .expression = query::field_expression(query::Field::Time, 0, 0, {})});
}

std::optional<answer::EventLayout> event_layout(const query::Query& query, plan::Joined* joined,
                                                int64_t ahead_ns) {
  if (plan::joins_between_hosts(query)) {
    return answer::EventLayout{.width = joined->events.values.size(), .time = plan::Joined::kTime};
  }
  if (joined != nullptr) {
    query::Query& rest = joined->stages[0].rest;
    if (query.shape == query::Shape::Events)
      return answer::EventLayout{.width = rest.values.size(), .time = std::nullopt};
    query::set_joined_times_ahead(rest, ahead_ns);
    return std::nullopt;
  }
  if (query.shape == query::Shape::Groups) return std::nullopt;
  const size_t time = query.values.size() - 1;
  return answer::EventLayout{.width = time, .time = time};
}

}  // namespace clew::engine
