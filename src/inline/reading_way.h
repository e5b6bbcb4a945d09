// SPDX-License-Identifier: Apache-2.0
// How the probes of a process read its memory: by the load of its vDSO (vdso_load.h), as long as
// the process has nothing that must not be read so; else by the kernel.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>

#include <sys/types.h>

#include "inline/arena.h"
#include "inline/stopped_target.h"
#include "inline/vdso_load.h"

namespace clew::inline_ {

// Of a new arena, with all threads stopped. Where the load cannot be written the kernel stays.
void begin_loads(StoppedTarget& target, const Arena& arena, const abi::LoadRecord& record);

// The kernel reads from now on, in all processes of the arena. The load stays where it is until the
// arena goes.
void stop_loads(const Arena& arena);

// What the processes of an arena map while they are traced: the first one, and the children that it
// has forked and whose hits are counted. If one of them maps something odd (target/odd_mappings.h),
// the kernel reads from then on. A child in a pid name space of its own is not found: all that is
// known of it is the pid that it has there.
class MappingsWatch {
 public:
  // Looks once in a second at most.
  void look(pid_t first, const Arena& arena);

 private:
  void meet_children(const Arena& arena);

  std::chrono::steady_clock::time_point looked_;
  uint32_t met_ = 1;             // Entries of TargetPage::processes (0 is of the first one),
  std::set<uint32_t> children_;  // and those of them that may still have the arena.
};

}  // namespace clew::inline_
