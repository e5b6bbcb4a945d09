// SPDX-License-Identifier: Apache-2.0
// ForkedChildren: the processes that have a target's arena, and so its jumps, because they were
// forked. They are known by the arena's file, wherever they are: a child outlives its parent, and
// one of a parent that has ended is init's.
//
// A child that is not stopped may make another one at any time. So look, stop, and look again,
// until a look finds nothing new: then all stand still, the target included.
#pragma once

#include <chrono>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "inline/arena.h"
#include "inline/stopped_target.h"

namespace clew::inline_ {

// Whether a process with these mappings has the arena, and not only its files, as a tracer.
bool has_arena(std::span<const target::Mapping> maps, const Arena& arena);

// All that have the arena, ascending; without the first process and what shares its memory.
std::vector<pid_t> children_with(const Arena& arena, pid_t first);

class ForkedChildren {
 public:
  struct Unstopped {
    pid_t pid = 0;
    std::string reason;
  };

  // Borrows the arena.
  ForkedChildren(const Arena& arena, pid_t first) : arena_(arena), first_(first) {}

  // Those that no earlier look has seen.
  [[nodiscard]] std::vector<pid_t> look();
  // Those that have ended meanwhile are in neither list.
  void stop(std::span<const pid_t> pids, std::chrono::milliseconds timeout);
  // With the first process stopped, or gone: until nothing new is found. They stand still for this,
  // so that none of them is waited for long. False when one may run on.
  [[nodiscard]] bool stop_those_in_between();
  void resume() { stopped_.clear(); }

  [[nodiscard]] std::vector<StoppedTarget>& stopped() { return stopped_; }
  [[nodiscard]] const std::vector<Unstopped>& unstopped() const { return unstopped_; }

 private:
  [[nodiscard]] bool runs_on_memory_of_stopped(pid_t pid) const;

  const Arena& arena_;
  pid_t first_;
  std::set<pid_t> seen_;  // Ours or not: only pids that are new are looked at again.
  std::vector<StoppedTarget> stopped_;
  std::vector<Unstopped> unstopped_;
};

}  // namespace clew::inline_
