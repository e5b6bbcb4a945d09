// SPDX-License-Identifier: Apache-2.0
// Where the kernel tells of processes that begin and end: what keeps a scope of some processes
// together with those that they make (--follow), or counts those that are left out.
#pragma once

#include "base/error.h"
#include "engine/kernel/kernel_sources.h"
#include "kernel/providers/catalogue.h"
#include "kernel/trace_events.h"
#include "plan/kernel_lower.h"
#include "query/type_source.h"

namespace clew::engine {

struct KernelFamilySites {
  plan::KernelFamily family;
  KernelSite begins;
  KernelSite ends;
};

// What finds tracepoints and their fields; borrowed.
struct KernelLookup {
  kernel::Catalogue& catalogue;
  kernel::TraceEvents& events;
  query::TypeSource& types;
};

// Errors: as a query over these tracepoints has them.
Expected<KernelFamilySites> find_family(const KernelLookup& lookup, bool follows);

}  // namespace clew::engine
