// SPDX-License-Identifier: Apache-2.0
// Waits for a process that has a module, where none has it yet (machine.Function with
// --allow-missing).
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/chosen.h"

namespace clew::engine {

// The processes, once there are some whose loader has done its work; at once where there are.
// `chosen` names modules, and may miss them. NotFound when the time is over, or there is something
// to read at `stop_descriptor`; Refused where the kernel does not tell us of processes.
Expected<std::vector<pid_t>> wait_for_first(const Chosen& chosen, int stop_descriptor,
                                            std::optional<std::chrono::nanoseconds> at_most);

// One of them has ended, also if nobody has collected it yet: what was found of it is no more.
bool is_any_over(std::span<const pid_t> pids);

}  // namespace clew::engine
