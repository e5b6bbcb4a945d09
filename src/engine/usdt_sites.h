// SPDX-License-Identifier: Apache-2.0
// The static probes (USDT) of a process that a query's source names, as places in its modules.
//
//     the query                  a probe is
//     reads no argument of any   a jump at its nop (sites.h); where that has no room, a uprobe
//     reads one                  a uprobe of the kernel, whose programs know the forms of
//     arguments;
//                                so are all of the query's sources in processes
//
// While it is there, its semaphore is not 0: of a jump, by Attachment::raise(), of a uprobe, by the
// kernel.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/inventory.h"
#include "engine/kernel/kernel_sources.h"
#include "engine/sites.h"
#include "query/query.h"
#include "target/catalog.h"

namespace clew::engine {

// Whether the query asks for an argument of one of them.
bool reads_usdt_arguments(const query::Query& query);

struct StaticSite {
  size_t module = 0;
  const target::StaticProbe* probe = nullptr;  // Of the catalog.
};

// Those that the source matches in these modules; in all when the list is empty. Errors: NotFound
// with the nearest name; InvalidQuery when the source is not written as it should be.
Expected<std::vector<StaticSite>> find_static_sites(const query::Source& source,
                                                    target::Catalog& catalog,
                                                    const std::vector<size_t>& modules);

// The site of one as a uprobe. InvalidQuery when the query asks for an argument that it does not
// have, or for what no program of the kernel can have.
Expected<void> check_usdt_uprobe(const query::Query& query, const SiteSet& set, const Site& site);
KernelSite static_site(target::Catalog& catalog, const SiteSet& set, const Site& site);

// `clew list --usdt`: those of processes or of a file whose "provider:name" matches, with their
// places and arguments. Errors: NotFound with the nearest name.
Expected<std::string> list_usdt(const ListRequest& request);

}  // namespace clew::engine
