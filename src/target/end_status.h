// SPDX-License-Identifier: Apache-2.0
// How a process ended that is nobody's child of ours, which wait(2) would not tell us.
#pragma once

#include <optional>

#include <sys/types.h>

namespace clew::target {

// The status as of waitpid(2) of the process with this descriptor (pidfd_open) and pid. Known of
// one that nobody has waited for yet when we may trace it, but for status 0; of one that is gone,
// from Linux 6.15 on. Nothing in other cases.
std::optional<int> end_status(int pid_descriptor, pid_t pid);

}  // namespace clew::target
