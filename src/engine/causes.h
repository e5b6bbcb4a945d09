// SPDX-License-Identifier: Apache-2.0
// A query with joins by cause, for the processes that are traced: with the tracepoints of the
// vocabulary that say where requests begin and how they are handed on.
#pragma once

#include <memory>
#include <span>

#include "base/error.h"
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
};

// Those of the vocabulary's carriers count that one of the processes has. Errors: InvalidQuery when
// no request begins in any, and those of plan::separate().
Expected<plan::Joined> separate_causes(const query::Query& query, const CauseRequest& request,
                                       std::span<const std::unique_ptr<Tracee>> tracees);

}  // namespace clew::engine
