// SPDX-License-Identifier: Apache-2.0
#include "engine/causes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "engine/sites.h"
#include "query/print.h"

namespace clew::engine {
namespace {

// Of a function, or a line.
bool has(Tracee& tracee, const query::Source& source) {
  query::Query alone;
  alone.sources.push_back(source);
  SiteSet sites;
  return find_sites(alone, tracee.catalog(), true, {}, sites).has_value() && !sites.sites.empty();
}

}  // namespace

Expected<plan::Joined> separate_causes(const query::Query& query, const CauseRequest& request,
                                       std::span<const std::unique_ptr<Tracee>> tracees) {
  const auto is_there = [tracees](const query::Source& source) {
    return std::any_of(tracees.begin(), tracees.end(),
                       [&](const auto& tracee) { return has(*tracee, source); });
  };
  std::vector<query::Carrier> carriers =
      CLEW_TRY(query::carriers_of(request.vocabulary, request.types, is_there));
  const bool begins =
      std::any_of(carriers.begin(), carriers.end(), [&is_there](const query::Carrier& carrier) {
        return carrier.cause.act == query::Act::Begin && is_there(carrier.source);
      });
  if (!begins && !request.allow_missing) {
    return request.report.fail(
        query.joins[0].span,
        "no request begins in what is traced: none of it has a tracepoint with cause = \"begin\" "
        "(clew list --tracepoints); a vocabulary says where one does (docs/query-language.md)");
  }
  if (request.watches_threads) {
    std::vector<query::Carrier> threads = CLEW_TRY(query::carriers_of_threads(request.types));
    std::move(threads.begin(), threads.end(), std::back_inserter(carriers));
  }
  return plan::separate(query, carriers, request.report);
}

// A hit of both would be two events, one of which happened before the other.
Expected<void> check_places(const plan::Joined& joined, const query::Reporter& report,
                            Tracee& tracee) {
  using Place = std::tuple<size_t, uint64_t, query::SourceKind>;
  std::map<Place, uint16_t> streams;
  for (const Site& site : tracee.sites().sites) {
    if (!joined.is_stream(site.source)) continue;
    const query::Source& source = joined.events.sources[site.source];
    const Place place{site.module, site.address, source.kind};
    const auto [known, is_new] = streams.emplace(place, site.source);
    if (is_new || known->second == site.source) continue;
    return report.fail(
        source.span,
        fmt::format("{} and {} both have '{}', which would be two events of one call; name the "
                    "function in the same words, or narrow the pattern",
                    query::print(joined.events.sources[known->second]), query::print(source),
                    tracee.sites().names[site.names].function));
  }
  return {};
}

Expected<void> check_carriers(const plan::Joined& joined, Tracee& tracee,
                              const std::vector<collect::RefusedSite>& refused) {
  for (const Site& site : tracee.sites().sites) {
    if (joined.is_stream(site.source)) continue;
    const std::string& function = tracee.sites().names[site.names].function;
    const bool is_refused = std::any_of(
        refused.begin(), refused.end(),
        [&function](const collect::RefusedSite& each) { return each.function == function; });
    if (!is_refused) continue;
    return fail(ErrorCode::Refused,
                fmt::format("'{}' hands requests on and can take no probe in process {}, so what "
                            "caused what could be told wrong",
                            function, tracee.pid()));
  }
  return {};
}

}  // namespace clew::engine
