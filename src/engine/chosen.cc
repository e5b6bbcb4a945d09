// SPDX-License-Identifier: Apache-2.0
#include "engine/chosen.h"

#include <algorithm>

#include <fmt/format.h>

#include "target/process.h"

namespace clew::engine {

Expected<std::vector<pid_t>> find_chosen(const Chosen& chosen) {
  std::vector<pid_t> pids = chosen.pids;
  for (const std::string& pattern : chosen.name_patterns) {
    const std::vector<target::Process> found = CLEW_TRY(target::find_processes(pattern));
    if (found.empty()) {
      return fail(ErrorCode::NotFound, fmt::format("no process is called '{}'", pattern));
    }
    for (const target::Process& process : found) {
      pids.push_back(process.pid());
    }
  }
  for (const std::string& module : chosen.modules) {
    if (module.empty()) {
      return fail(ErrorCode::InvalidQuery,
                  "a function of all processes needs its module, as in "
                  "machine.Function(\"redis-server!lookupKey*\")");
    }
    const std::vector<pid_t> found = CLEW_TRY(target::find_processes_with(module));
    if (found.empty() && !chosen.may_miss) {
      return fail(ErrorCode::NotFound,
                  fmt::format("no process of this machine has '{}' mapped", module));
    }
    pids.insert(pids.end(), found.begin(), found.end());
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace clew::engine
