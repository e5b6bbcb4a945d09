// SPDX-License-Identifier: Apache-2.0
#include "engine/causes.h"

#include <algorithm>
#include <vector>

#include "engine/sites.h"

namespace clew::engine {
namespace {

// Of a function, or a line.
bool has(Tracee& tracee, const query::Source& source) {
  query::Query alone;
  alone.sources.push_back(source);
  SiteSet sites;
  return find_sites(alone, tracee.catalog(), false, {}, sites).has_value();
}

bool is_begin(const query::Carrier& carrier) {
  return carrier.cause.act == query::Act::Begin;
}

}  // namespace

Expected<plan::Joined> separate_causes(const query::Query& query, const CauseRequest& request,
                                       std::span<const std::unique_ptr<Tracee>> tracees) {
  std::vector<query::Carrier> carriers =
      CLEW_TRY(query::carriers_of(request.vocabulary, request.types));
  std::erase_if(carriers, [&](const query::Carrier& carrier) {
    return std::none_of(tracees.begin(), tracees.end(),
                        [&](const auto& tracee) { return has(*tracee, carrier.source); });
  });
  if (std::none_of(carriers.begin(), carriers.end(), is_begin)) {
    return request.report.fail(
        query.joins[0].span,
        "no request begins in what is traced: none of it has a tracepoint with cause = \"begin\" "
        "(clew list --tracepoints); a vocabulary says where one does (docs/query-language.md)");
  }
  return plan::separate(query, carriers, request.report);
}

}  // namespace clew::engine
