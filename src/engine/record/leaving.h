// SPDX-License-Identifier: Apache-2.0
// A process that was recorded while it ran, and goes on without us: which processes are let alone
// in the first place, and how all that run on copies are left in the end.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>

#include <sys/types.h>

#include "base/error.h"
#include "engine/record/recorded_process.h"
#include "engine/record/stops.h"

namespace clew::engine {

// By process. Shared with what it has forked.
using RecordedProcesses = std::unordered_map<pid_t, std::shared_ptr<RecordedProcess>>;

// What can be said before it is stopped. Errors: NotFound; Refused, with the reason's name.
Expected<void> check_recordable(pid_t pid);
// Lobes have the numbers that threads have for themselves. Errors: Refused, when we have others.
Expected<void> check_numbers(pid_t pid);

// Whether a thread of it does.
bool lives(pid_t process);
// Whether a thread of it lives that we trace. Its first one may have ended.
bool is_watched(pid_t process);

// Calls come to the originals again, in all recorded processes and what these have forked.
class Leaving {
 public:
  // Borrows both.
  Leaving(const RecordedProcesses& recorded, Stops& stops) : recorded_(recorded), stops_(stops) {}
  // Errors: of the first process that keeps its entries, when all others are left.
  Expected<void> run();

 private:
  [[nodiscard]] RecordedProcesses find_others() const;
  Expected<void> leave(RecordedProcess& recorded, pid_t process);

  const RecordedProcesses& recorded_;
  Stops& stops_;
  std::set<pid_t> seen_;
};

}  // namespace clew::engine
