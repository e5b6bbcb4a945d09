// SPDX-License-Identifier: Apache-2.0
// What is there: functions that can be traced, fields, tracepoints; processes that are traced; the
// state of this machine. Text for people, or one JSON object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace clew::engine {

struct ListRequest {
  std::string pattern = "*";  // module!function
  std::optional<pid_t> pid;
  std::string name;    // A process by its name, …
  std::string file;    // … or an ELF file.
  bool sites = false;  // Also whether entry and exits can be taken, and why not.
  bool json = false;
};
Expected<std::string> list_functions(const ListRequest& request);

std::string list_fields();
Expected<std::string> list_tracepoints(const std::vector<std::string>& vocabulary_paths);

// Processes with an arena, their sessions and residue.
std::string list_traced(bool json);
// Removes what dead sessions left in a process; `force` also live ones.
Expected<std::string> remove_probes(pid_t pid, bool force);

// Checks of the machine and, with a pid, of the process; `problems` counts those that stand in the
// way of tracing.
struct Diagnosis {
  std::string text;
  uint32_t problems = 0;
};
Diagnosis diagnose(std::optional<pid_t> pid);

}  // namespace clew::engine
