// SPDX-License-Identifier: Apache-2.0
// A query's USDT sources -> the static probes of one process that they match. Each is a uprobe of
// the kernel's, whose programs know the forms of arguments; while it is there, the probe's
// semaphore is not 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/inventory.h"
#include "engine/kernel/kernel_sources.h"
#include "kernel/providers/catalogue.h"
#include "query/query.h"

namespace clew::engine {

bool has_usdt(const query::Query& query);

// Those that one source matches. Errors: NotFound with the nearest name; InvalidQuery when the
// query asks for an argument that one of them does not have, or that no program of the kernel can
// have.
Expected<std::vector<KernelSite>> find_usdt_sites(const query::Query& query, uint16_t source,
                                                  kernel::Catalogue& catalogue, pid_t pid);

// `clew list --usdt`: those of processes or of a file whose "provider:name" matches, with their
// places and arguments. Errors: NotFound with the nearest name.
Expected<std::string> list_usdt(const ListRequest& request);

}  // namespace clew::engine
