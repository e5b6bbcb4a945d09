// SPDX-License-Identifier: Apache-2.0
#include "engine/query_ends.h"

namespace clew::engine {
namespace {

Expected<void> leave_to_panes(query::Query& query) {
  if (query.for_events) {
    return fail(ErrorCode::InvalidQuery,
                "'for N events' is counted by one session, and a cluster has several");
  }
  if (query::is_outstanding(query)) {
    return fail(ErrorCode::InvalidQuery,
                "what is outstanding is asked on one machine, and not through a cluster");
  }
  if (query::joins_by_cause(query)) {
    return fail(ErrorCode::InvalidQuery,
                "joins by cause do not go through a cluster yet; joins by time ('within') do");
  }
  query.for_ns.reset();
  query.every_ns.reset();
  return {};
}

}  // namespace

std::string no_process(const Request& request) {
  return request.panes == nullptr
             ? "no process to trace; use -p PID, --name PATTERN, -c COMMAND, or whose processes "
               "are meant (--container, --unit, --user)"
             : "no process to trace; use cluster.Function(\"module!function\"), or --name PATTERN";
}

Expected<void> set_ends(const Request& request, query::Query& query) {
  if (request.panes != nullptr) return leave_to_panes(query);
  if (request.for_ns) {
    query.for_ns = request.for_ns;
    query.for_events.reset();
  }
  if (request.every_ns && query.window) {
    return fail(ErrorCode::InvalidQuery,
                "'window' says when there is an answer, and so does --every; choose one");
  }
  if (request.every_ns && query.clustering) return fail(ErrorCode::InvalidQuery, kClustersOfAll);
  if (request.every_ns) query.every_ns = request.every_ns;
  return {};
}

}  // namespace clew::engine
