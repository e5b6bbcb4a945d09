// SPDX-License-Identifier: Apache-2.0
// A query's sources in the kernel -> the probes that they match.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "collect/losses.h"
#include "kernel/probe.h"
#include "kernel/providers/catalogue.h"
#include "kernel/trace_events.h"
#include "plan/sites.h"
#include "query/query.h"

namespace clew::engine {

// A probe that one source matches. What makes the entry of its calls known is `entry`.
struct KernelSite {
  uint16_t source = 0;
  kernel::Probe probe;
  std::vector<kernel::Probe> more;  // Further exits of a function of a process.
  kernel::Probe entry;              // Of SyscallReturn, KernelReturn and Return.
  plan::SiteNames names;
  // Of a Return of a process that is timed: it leaves by a jump to another function.
  bool is_timed_to_jump = false;
  // Of a source of a process: why it has no jump there (uprobe_sites.h).
  std::optional<collect::RefusedSite> refused{};
};

// What could not be matched: the message is for the source.
struct KernelSourceError {
  uint16_t source = 0;
  Error error;
};

// Errors: NotFound with the nearest name, unless `allow_missing`; Refused with the reason.
tl::expected<std::vector<KernelSite>, KernelSourceError> find_kernel_sites(
    const query::Query& query, kernel::Catalogue& catalogue, kernel::TraceEvents& events,
    bool allow_missing);

// What to say when an ordinary user may not do what it takes; else the error as it is.
Error explain_rights(Error error);

}  // namespace clew::engine
