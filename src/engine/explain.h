// SPDX-License-Identifier: Apache-2.0
// What a query would do: plan and tiers, sites, state, programs. Changes nothing in any process.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/run.h"

namespace clew::engine {

struct ExplainOptions {
  bool programs = false;  // Also the probe ISA of each program,
  bool code = false;      // and its machine code at the first site.
};

Expected<std::string> explain(const Request& request, const ExplainOptions& options);

}  // namespace clew::engine
