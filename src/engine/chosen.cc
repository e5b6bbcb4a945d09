// SPDX-License-Identifier: Apache-2.0
#include "engine/chosen.h"

#include <algorithm>
#include <set>

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

Expected<std::string> leave_out_others(std::vector<pid_t>& pids,
                                       const std::vector<std::string>& names) {
  std::set<pid_t> allowed;
  for (const std::string& pattern : names) {
    for (const target::Process& process : CLEW_TRY(target::find_processes(pattern)))
      allowed.insert(process.pid());
  }
  const size_t left_out =
      std::erase_if(pids, [&allowed](pid_t pid) { return !allowed.contains(pid); });
  if (left_out == 0) return "";
  const std::string what =
      fmt::format("{} process{} whose name is not among '{}', which alone may be traced", left_out,
                  left_out == 1 ? "" : "es", fmt::join(names, "', '"));
  if (!pids.empty()) return what;
  return fail(ErrorCode::Refused, "nothing is left to trace without " + what);
}

}  // namespace clew::engine
