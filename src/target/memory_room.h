// SPDX-License-Identifier: Apache-2.0
// How much memory a process can still have until the kernel kills somebody for it: what its memory
// control group and those around it leave, and what the machine has. Files that are kept in memory
// count as free, as the kernel drops them first.
//
// Control groups of both versions (admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst), as far as they
// can be seen from here: one beyond our control group namespace limits us unseen. All is out of
// date when it is returned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace clew::target {

struct MemoryRoom {
  uint64_t left_bytes = UINT64_MAX;   // Of what has least.
  uint64_t limit_bytes = UINT64_MAX;  // Of the same.
  std::string group;                  // Its directory; empty: the machine itself.
};

MemoryRoom memory_room(pid_t pid);

// Of one control group alone, by its directory; nothing when it sets no limit.
std::optional<MemoryRoom> room_of_group(const std::string& directory);

}  // namespace clew::target
