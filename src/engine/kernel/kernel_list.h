// SPDX-License-Identifier: Apache-2.0
// What can be asked of the kernel: system calls, tracepoints and functions, with what they export.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/inventory.h"

namespace clew::engine {

// Those whose names match ("read*", "sched:*", "ext4!*"); functions only where the pattern says
// more than "*". NotFound when none does; Refused without rights.
Expected<std::string> list_kernel_events(const NameRequest& request);

}  // namespace clew::engine
