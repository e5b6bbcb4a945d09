// SPDX-License-Identifier: Apache-2.0
// The first half of a query's life: text -> Query -> Plan -> programs, for the processes that the
// request names. Nothing in any process changes (a command that Clew starts is stopped before its
// first constructor).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "answer/event_table.h"
#include "base/error.h"
#include "engine/chosen.h"
#include "engine/kernel/kernel_tracee.h"
#include "engine/programs.h"
#include "engine/run.h"
#include "engine/tracee.h"
#include "inline/attachment.h"
#include "plan/joined.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "plan/sites.h"

namespace clew::engine {

inline constexpr size_t kProcessesMax = 1024;
inline constexpr uint32_t kSpareGroups = 256;

struct Compiled {
  std::chrono::steady_clock::time_point started;
  std::optional<inline_::Launched> launched;
  std::vector<std::unique_ptr<Tracee>> tracees;  // Their sites are found. None when all sources
  std::unique_ptr<KernelTracee> kernel;          // are in the kernel. Null when none is.
  // Of sites of processes that can take no jump, or, without tracees, whose stacks are asked for.
  // Or null.
  std::unique_ptr<KernelTracee> uprobes;
  std::string_view all_uprobes;  // Why all that is in processes is; empty: it is not.
  query::Query query;            // As it was understood.
  // Of a query with joins: `plan` is that of its events, or, in place, of their answer.
  std::optional<plan::Joined> joined;
  bool in_place = false;
  // Of a query whose panes are taken: how its events are given away, if they are, and whether what
  // is joined is.
  std::optional<answer::EventLayout> events;
  bool joins_elsewhere = false;
  std::unique_ptr<Programs> programs;  // Of what it joins.
  plan::Plan plan;                     // Without tracees this and what follows is the kernel's.
  plan::Grouping grouping;
  plan::Lowered lowered;
  Tracee::Shared shared;                      // Of the tracees, for more of them.
  std::vector<collect::RefusedSite> refused;  // That are in none of them.
  std::vector<std::string> lost;              // Sentences for collect::Losses::lost.
  std::vector<collect::LeftOut> left_out;     // Processes that cannot be traced, where others can.
  std::optional<LaterProcesses> later;        // Of sources on the whole machine.
  bool has_waited = false;                    // For the first process, which may be a brief one.
};

// With a descriptor that says when to stop, and where missing modules are allowed: waits for the
// first process that has one which a source on the whole machine names.
Expected<Compiled> compile(const Request& request, Notices& notices,
                           std::optional<int> stop_descriptor = std::nullopt);

}  // namespace clew::engine
