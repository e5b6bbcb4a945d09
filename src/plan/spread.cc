// SPDX-License-Identifier: Apache-2.0
#include "plan/spread.h"

#include <algorithm>

namespace clew::plan {
namespace {

bool is_host(const query::Expression& key) {
  return key.kind == query::ExpressionKind::Field && key.field == query::Field::Host;
}

bool is_within_hosts(const query::Join& join) {
  if (!join.within) return false;
  bool is_of_host = false;
  for (size_t i = 0; i < join.within->joined.size(); ++i)
    is_of_host = is_of_host || (is_host(join.within->joined[i]) && is_host(join.within->other[i]));
  return is_of_host;
}

}  // namespace

// The column of a joined query may be anything: only events say their own host.
bool joins_within_hosts(const query::Query& query) {
  return std::all_of(query.joins.begin(), query.joins.end(), is_within_hosts);
}

bool sends_events(const query::Query& query) {
  return query.shape == query::Shape::Events || joins_between_hosts(query);
}

}  // namespace clew::plan
