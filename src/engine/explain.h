// SPDX-License-Identifier: Apache-2.0
// What a query would do: plan and tiers, sites, state, programs; explain() changes nothing in any
// process.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/run.h"

namespace clew::engine {

struct ExplainOptions {
  bool programs = false;  // Also the probe ISA of each program,
  bool code = false;      // and its machine code at the first site.
  bool json = false;      // The plan alone, one JSON object a line.
};

Expected<std::string> explain(const Request& request, const ExplainOptions& options);

// What a query with joins carries: it is answered, until the query's end or until `stop_descriptor`
// is readable, and the answer is left out. As text, or one JSON object a line.
Expected<std::string> explain_run(const Request& request, int stop_descriptor, Notices& notices,
                                  bool json);

}  // namespace clew::engine
