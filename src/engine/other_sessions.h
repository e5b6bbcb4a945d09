// SPDX-License-Identifier: Apache-2.0
// Who else traces a process: where its sessions stand in another one's way, it is said whose they
// are.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collect/losses.h"

namespace clew::engine {

// Whether a node of a cluster has begun this tracer, for a query of that.
[[nodiscard]] bool is_of_cluster(pid_t tracer);

// "clew 4711 (user redis)": whoever else traces these processes at present, by pid. Empty: nobody.
[[nodiscard]] std::string other_tracers(const std::set<pid_t>& processes);

// The same, where some of these are refused as another session has their bytes.
[[nodiscard]] std::string holders_of(const std::vector<collect::RefusedSite>& refused,
                                     const std::set<pid_t>& processes);

}  // namespace clew::engine
