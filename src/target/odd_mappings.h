// SPDX-License-Identifier: Apache-2.0
// Mappings that a plain load must not read for somebody else: reading them has effects (a device),
// or may wait for a process (a file system in user space, memory that userfaultfd(2) serves), or
// makes them grow (a stack of the program's own making).
//
// The kernel names the last kind nowhere but in /proc/PID/smaps, and reading that walks all page
// tables: a large process could map nothing for up to half a second. But it counts the size of all
// of them in /proc/PID/status, which is more than the first stack's where there are others.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

#include "target/process.h"

namespace clew::target {

// What the process has of that, or may have, as it cannot be seen; said for the user: the first
// that is found. Nothing: none. Asks no server of files. Of userfaultfd(2) it knows what the
// process has a descriptor of.
std::optional<std::string> find_odd_mapping(pid_t pid, std::span<const Mapping> maps);

}  // namespace clew::target
