// SPDX-License-Identifier: Apache-2.0
#include "engine/causes.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/sites.h"
#include "plan/in_place.h"
#include "plan/rewrite_join.h"
#include "query/print.h"
#include "query/socket_carriers.h"

namespace clew::engine {
namespace {

// Of a function, or a line.
bool has(Tracee& tracee, const query::Source& source) {
  query::Query alone;
  alone.sources.push_back(source);
  SiteSet sites;
  return find_sites(alone, tracee.catalog(), true, {}, sites).has_value() && !sites.sites.empty();
}

// A place that is not in a program that should have it: an `end` that is missed makes others wrong.
Expected<void> check_there(const query::Carrier& carrier, Tracee& tracee) {
  const query::Source& source = carrier.source;
  if (source.module.empty() || query::is_kernel_source(source.kind)) return {};
  const auto modules = tracee.catalog().find_modules(source.module);
  if (!modules || modules->empty()) return {};
  query::Query alone;
  alone.sources.push_back(source);
  SiteSet sites;
  const auto found = find_sites(alone, tracee.catalog(), false, {}, sites);
  if (found) return {};
  return fail(found.error().code,
              fmt::format("{} says what becomes of requests: {}; --allow-missing does without",
                          source.label, found.error().message));
}

using IsThere = std::function<bool(const query::Source&)>;

// Without a request, nothing is joined.
Expected<void> check_begins(const query::Query& query, const std::vector<query::Carrier>& carriers,
                            const IsThere& is_there, const CauseRequest& request) {
  const query::Reporter& report = request.report;
  std::optional<causal::EdgeClass> best;
  for (const query::Carrier& carrier : carriers) {
    const query::Cause& cause = carrier.cause;
    if (cause.act == query::Act::Begin && (!best || cause.how < *best) && is_there(carrier.source))
      best = cause.how;
  }
  const causal::EdgeClass least = query::least_cause(query);
  if (best && *best <= least) return {};
  const query::Span span = query.joins[0].span;
  if (best) {
    return report.fail(
        span, fmt::format("where requests begin is known here as {} at best, and "
                          "what is less than {} is not believed: 'with cause >= "
                          "{}' believes it",
                          causal::name_of(*best), causal::name_of(least), causal::name_of(*best)));
  }
  if (!request.guessed.empty()) {
    return report.fail(span, fmt::format("no request begins in what is traced that is believed: "
                                         "what {} does with messages is known by a guess alone, "
                                         "which 'with cause >= heuristic' believes",
                                         fmt::join(request.guessed, ", ")));
  }
  return report.fail(
      span, fmt::format("no request begins in what is traced: a vocabulary says where one does, or "
                        "the program by <clew/cause.h>, whose symbols it has to keep; and -p, "
                        "--name or -c name it (clew list --tracepoints, docs/query-language.md); "
                        "messages bring requests {}",
                        request.in_place ? "with --plan emit alone"
                        : request.watches_threads
                            ? "into programs that have a [[program]] in a vocabulary"
                            : "to root alone, and not with --spill or stacks"));
}

}  // namespace

Expected<void> check_graph(const Request& request, bool has_joins) {
  if (request.account && !has_joins) {
    return fail(ErrorCode::InvalidQuery,
                "--run counts what joins by cause carry (join a in … on a -> b), and this query "
                "has none");
  }
  if (!request.graph || has_joins) return {};
  return fail(ErrorCode::InvalidQuery,
              "--graph draws which threads a request went through, and only a query with joins by "
              "cause (join a in … on a -> b) follows requests; this one has none");
}

Expected<void> check_in_place(const Request& request, bool has_joins) {
  if (!request.in_place) return {};
  const char* other = nullptr;
  if (!has_joins) other = "and this query has none";
  if (request.graph) other = "and --graph draws what the tracer has followed";
  if (!request.spill_path.empty()) other = "and --spill keeps events";
  if (request.follow_forks) other = "and --follow goes after children";
  if (request.uprobes == UprobePolicy::WhereRefused) other = "and --uprobes are of the kernel";
  if (other == nullptr) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("--plan in-place answers joins by cause within a process, {}", other));
}

namespace {

// A hit whose key cannot be read would be missed, and others wrong.
Expected<void> check_keys(const std::vector<query::Carrier>& carriers, const IsThere& is_there) {
  for (const query::Carrier& carrier : carriers) {
    const bool is_known =
        std::all_of(carrier.keys.begin(), carrier.keys.end(), plan::is_known_at_hit);
    if (is_known || !is_there(carrier.source)) continue;
    return fail(ErrorCode::InvalidQuery,
                fmt::format("this query is not answered in place: {} hands over with an object "
                            "that is read from memory, or noted at the call's entry (--plan emit "
                            "answers it)",
                            query::print(carrier.source)));
  }
  return {};
}

}  // namespace

std::vector<query::Carrier> carriers_of_messages(Programs& programs,
                                                 std::span<const std::unique_ptr<Tracee>> tracees,
                                                 bool follows, query::TypeSource& types,
                                                 Notices& notices) {
  const bool has_profile =
      std::any_of(tracees.begin(), tracees.end(),
                  [&programs](const auto& each) { return programs.of(each->pid()) != nullptr; });
  if (!has_profile && !(follows && programs.has_tables())) return {};
  std::vector<query::Carrier> all;
  const auto add = [&](Expected<std::vector<query::Carrier>> some) {
    if (some) return void(all.insert(all.end(), some->begin(), some->end()));
    notices.warning("messages between processes carry no request: " + some.error().message);
  };
  add(query::carriers_of_sockets(&types));
  const bool follows_pipes =
      (follows && programs.may_follow_pipes()) ||
      std::any_of(tracees.begin(), tracees.end(),
                  [&programs](const auto& each) { return programs.follows_pipes(each->pid()); });
  if (follows_pipes) add(query::carriers_of_pipes(&types));
  return all;
}

std::vector<std::string> guessed_programs(Programs& programs,
                                          std::span<const std::unique_ptr<Tracee>> tracees) {
  std::set<std::string> names;
  for (const auto& each : tracees) {
    if (programs.is_guessed(each->pid())) names.insert(programs.name_of(each->pid()));
  }
  return {names.begin(), names.end()};
}

Expected<plan::Joined> separate_causes(const query::Query& query, const CauseRequest& request,
                                       std::span<const std::unique_ptr<Tracee>> tracees) {
  const auto is_there = [tracees](const query::Source& source) {
    return std::any_of(tracees.begin(), tracees.end(),
                       [&](const auto& tracee) { return has(*tracee, source); });
  };
  std::vector<query::Carrier> carriers =
      CLEW_TRY(query::carriers_of(request.vocabulary, request.types, is_there));
  if (request.in_place) CLEW_TRY(check_keys(carriers, is_there));
  for (const query::Carrier& carrier : carriers) {
    for (const auto& tracee : tracees) {
      if (!request.allow_missing) CLEW_TRY(check_there(carrier, *tracee));
    }
  }
  // What a program accepts begins one, too.
  if (request.sockets.empty() && !request.allow_missing)
    CLEW_TRY(check_begins(query, carriers, is_there, request));
  if (request.watches_threads) {
    std::vector<query::Carrier> threads = CLEW_TRY(query::carriers_of_threads(request.types));
    std::move(threads.begin(), threads.end(), std::back_inserter(carriers));
  }
  carriers.insert(carriers.end(), request.sockets.begin(), request.sockets.end());
  // A picture counts the rows of each event.
  return plan::separate(request.also.empty() ? plan::rewrite_join(query) : query, carriers,
                        request.report, request.also);
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

namespace {

bool is_refused(const std::string& function, const std::vector<collect::RefusedSite>& refused) {
  return std::any_of(refused.begin(), refused.end(), [&function](const collect::RefusedSite& each) {
    return each.function == function;
  });
}

}  // namespace

Expected<void> check_refused(const plan::Joined& joined, Tracee& tracee,
                             const std::vector<collect::RefusedSite>& refused) {
  std::map<uint16_t, bool> taken;  // By source: whether any of its sites is.
  std::map<uint16_t, std::string> names;
  for (const Site& site : tracee.sites().sites) {
    const std::string& function = tracee.sites().names[site.names].function;
    const bool is_taken = !is_refused(function, refused);
    taken[site.source] = taken[site.source] || is_taken;
    if (!is_taken) names.emplace(site.source, function);
    if (is_taken || joined.is_stream(site.source)) continue;
    return fail(ErrorCode::Refused,
                fmt::format("'{}' hands requests on and can take no probe in process {}, so what "
                            "caused what could be told wrong (clew list --sites says why; "
                            "--allow-late-uprobe-danger may have a jump there)",
                            function, tracee.pid()));
  }
  for (const auto& [source, is_taken] : taken) {
    if (is_taken) continue;
    return fail(
        ErrorCode::Refused,
        fmt::format("no site of {} could be taken: '{}' is refused in process {} (clew "
                    "list --sites says why; --allow-late-uprobe-danger may have a jump there)",
                    query::print(joined.events.sources[source]), names[source], tracee.pid()));
  }
  return {};
}

}  // namespace clew::engine
