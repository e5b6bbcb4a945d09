// SPDX-License-Identifier: Apache-2.0
// Whether the kernel may put its breakpoints where it is to put them. Over a jump of a session they
// would end the process: the kernel executes the instruction that the file has there.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "base/error.h"
#include "kernel/machine_session.h"

namespace clew::engine {

// Of all enablings but those of `elsewhere`. Errors: Refused, with the probe's name.
Expected<void> check_uprobe_places(std::span<const kernel::MachineEnabling> enablings,
                                   const std::set<uint32_t>& elsewhere);

// Of those that name one process: which may not be set, also where the instruction in memory is not
// the file's, which is what the kernel would execute. A trap of somebody's uprobe is no hindrance.
std::set<uint32_t> barred_uprobes(std::span<const kernel::MachineEnabling> enablings);

}  // namespace clew::engine
