// SPDX-License-Identifier: Apache-2.0
// What a process takes for the name of its machine.
#pragma once

#include <string>

#include <sys/types.h>

namespace clew::target {

// Of its UTS name space: the own machine's, unless the process is in a container. Who may not look
// into that of another one gets its number, "uts:[4026532640]"; empty: there is no such process.
std::string node_name_of(pid_t pid);

}  // namespace clew::target
