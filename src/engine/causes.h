// SPDX-License-Identifier: Apache-2.0
// A query with joins by cause, for the processes that are traced: with the tracepoints of the
// vocabulary that say where requests begin and how they are handed on.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "collect/losses.h"
#include "engine/programs.h"
#include "engine/run.h"
#include "engine/tracee.h"
#include "plan/joined.h"
#include "query/diagnostic.h"
#include "query/query.h"
#include "query/vocabulary.h"

namespace clew::engine {

struct CauseRequest {
  const query::Vocabulary& vocabulary;
  query::TypeSource* types;  // May be null.
  const query::Reporter& report;
  bool watches_threads = false;  // The kernel says which thread begins another.
  // And who sends and receives what; none: it is not asked, or does not say.
  std::vector<query::Carrier> sockets{};
  std::vector<std::string> guessed{};  // Programs that a table knows, and not well enough.
  bool in_place = false;               // What the tracer alone can follow is left out.
  bool allow_missing = false;          // A program or library that comes later may begin one.
  std::vector<query::Field> also{};    // plan::separate()
};

// Errors: InvalidQuery, where a picture, or what joins carry, is asked of a query without joins.
Expected<void> check_graph(const Request& request, bool has_joins);

// Errors: InvalidQuery, where joins in place are asked for, and cannot be.
Expected<void> check_in_place(const Request& request, bool has_joins);

// What the kernel says of messages, where one of the processes, or of those that may come, has a
// table; what it cannot say is a warning.
std::vector<query::Carrier> carriers_of_messages(Programs& programs,
                                                 std::span<const std::unique_ptr<Tracee>> tracees,
                                                 bool follows, query::TypeSource& types,
                                                 Notices& notices);

// Names of processes that only a guess knows, which the query does not believe.
std::vector<std::string> guessed_programs(Programs& programs,
                                          std::span<const std::unique_ptr<Tracee>> tracees);

// Errors: InvalidQuery when no request begins in any of them, and those of plan::separate().
Expected<plan::Joined> separate_causes(const query::Query& query, const CauseRequest& request,
                                       std::span<const std::unique_ptr<Tracee>> tracees);

// Of a process whose sites are found. Errors: InvalidQuery for two streams with a place in common.
Expected<void> check_places(const plan::Joined& joined, const query::Reporter& report,
                            Tracee& tracee);
// Of one that is attached. Errors: Refused, for a place that hands requests on, and for a stream
// of which no place has a probe.
Expected<void> check_refused(const plan::Joined& joined, Tracee& tracee,
                             const std::vector<collect::RefusedSite>& refused);

}  // namespace clew::engine
