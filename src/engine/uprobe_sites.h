// SPDX-License-Identifier: Apache-2.0
// Sites of a process that can take no jump, and take the kernel's uprobes in its place: probes of a
// KernelTracee then, whose programs count as those in the process do.
//
//     the site's refusal    by default    with --uprobes    with --no-uprobes
//     later-uprobe          a uprobe      a uprobe          refused
//     of its code           refused       a uprobe          refused
//     of its meaning        refused       refused           refused
//
// A query that asks for arguments of static probes has uprobes alone: the kernel's programs know
// their forms. So has one that asks for stacks beside sources of the kernel. A static probe without
// room for a jump has a uprobe also without --uprobes: a nop is made for one.
//
// They are chosen by the files alone, before anything is armed: a site is never both. What others
// have put there meanwhile is looked at under the process's lock (uprobe_places.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/kernel_sources.h"
#include "engine/run.h"
#include "engine/tracee.h"
#include "query/query.h"

namespace clew::engine {

// Whether we may set uprobes at all, and know processes by the numbers by which the kernel does.
bool may_set_uprobes();

// Whether a uprobe is set where a site is refused for this reason.
bool takes_uprobe(code::RefusalReason reason, UprobePolicy policy);

// No return address is changed: returns are uprobes at the instructions that leave the function,
// and sites whose exits are not known stay refused.

// A site that is refused and may be uprobes.
struct UprobeSite {
  Tracee* tracee = nullptr;
  size_t index = 0;  // In its SiteSet::sites.
  KernelSite probe;
};

// Those of the tracee, whose windows are planned.
Expected<std::vector<UprobeSite>> find_uprobe_sites(Tracee& tracee, const query::Query& query,
                                                    UprobePolicy policy);

// All of the tracee's sites, for a query that only programs of the kernel can serve, for this
// `reason`; those that can be no uprobe are added to `refused`.
Expected<std::vector<UprobeSite>> find_as_uprobes(Tracee& tracee, const query::Query& query,
                                                  std::string_view reason,
                                                  std::vector<collect::RefusedSite>& refused);

// A process that is forked begins with the place of its parent: so the site is set in the file, for
// all processes, and the programs tell which of them count.
void set_everywhere(KernelSite& site);

// Files of overlays (of containers) are another one in each, and one to the kernel's uprobes: sites
// of two of them, which may be one place, would count each hit twice. InvalidQuery.
Expected<void> check_one_each(const std::vector<KernelSite>& everywhere);

// What to try instead of a site of the query that is refused; may be empty. Uprobes are no way out
// where they cannot serve what the query asks for.
std::string way_out(const collect::RefusedSite& site, const query::Query& query,
                    UprobePolicy policy);

// Of refused sites: that root would have uprobes for some of them; else empty.
std::string uprobes_of_root(const std::vector<collect::RefusedSite>& refused,
                            const query::Query& query, UprobePolicy policy);

// Of a query with joins, whose programs at one place have an order: leaves out those that share
// theirs, as the kernel runs them in an order of its own.
void drop_shared_places(const query::Query& query, std::vector<UprobeSite>& sites);

}  // namespace clew::engine
