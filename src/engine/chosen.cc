// SPDX-License-Identifier: Apache-2.0
#include "engine/chosen.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "target/process.h"

namespace clew::engine {

namespace {

class ChosenFinder {
 public:
  ChosenFinder(const Chosen& chosen, std::optional<WhoseFilter> filter)
      : chosen_(chosen), filter_(std::move(filter)) {}

  Expected<std::vector<pid_t>> run() {
    for (const pid_t pid : chosen_.pids)
      CLEW_TRY(add_pid(pid));
    for (const std::string& pattern : chosen_.name_patterns)
      CLEW_TRY(add_named(pattern));
    for (const std::string& pattern : chosen_.newest_names)
      CLEW_TRY(add_newest(pattern));
    for (const std::string& module : chosen_.modules)
      CLEW_TRY(add_with(module));
    if (chosen_.says_whose_alone()) CLEW_TRY(add_all());
    if (pids_.empty() && filter_ && !chosen_.may_miss) return tl::unexpected(filter_->none());
    return {{pids_.begin(), pids_.end()}};
  }

 private:
  bool holds(const target::Process& process) { return !filter_ || filter_->holds(process); }

  // One that has gone is told later, with what was to be done to it.
  Expected<void> add_pid(pid_t pid) {
    if (filter_) {
      const auto process = target::read_process(pid);
      if (process && !holds(*process)) return {};
    }
    pids_.insert(pid);
    return {};
  }

  Expected<std::vector<target::Process>> named(const std::string& pattern) {
    std::vector<target::Process> found = CLEW_TRY(target::find_processes(pattern));
    if (found.empty())
      return fail(ErrorCode::NotFound, fmt::format("no process is called '{}'", pattern));
    std::erase_if(found, [this](const target::Process& process) { return !holds(process); });
    return found;
  }

  Expected<void> add_named(const std::string& pattern) {
    for (const target::Process& process : CLEW_TRY(named(pattern)))
      pids_.insert(process.pid());
    return {};
  }

  // Of two of the same clock tick the one with the larger pid, which mostly is the later one.
  Expected<void> add_newest(const std::string& pattern) {
    const std::vector<target::Process> found = CLEW_TRY(named(pattern));
    const auto newest = std::max_element(
        found.begin(), found.end(), [](const target::Process& one, const target::Process& other) {
          return std::pair(one.incarnation.start_ticks, one.pid()) <
                 std::pair(other.incarnation.start_ticks, other.pid());
        });
    if (newest != found.end()) pids_.insert(newest->pid());
    return {};
  }

  Expected<void> add_with(const std::string& module) {
    if (module.empty()) {
      return fail(ErrorCode::InvalidQuery,
                  "a function of all processes needs its module, as in "
                  "machine.Function(\"redis-server!lookupKey*\")");
    }
    const std::vector<pid_t> found = CLEW_TRY(target::find_processes_with(module));
    if (found.empty() && !chosen_.may_miss) {
      return fail(ErrorCode::NotFound,
                  fmt::format("no process of this machine has '{}' mapped", module));
    }
    for (const pid_t pid : found)
      CLEW_TRY(add_pid(pid));
    return {};
  }

  Expected<void> add_all() {
    for (const target::Process& process : CLEW_TRY(target::list_others()))
      if (holds(process)) pids_.insert(process.pid());
    return {};
  }

  const Chosen& chosen_;
  std::optional<WhoseFilter> filter_;
  std::set<pid_t> pids_;
};

}  // namespace

Expected<std::vector<pid_t>> find_chosen(const Chosen& chosen) {
  std::optional<WhoseFilter> filter;
  if (!chosen.whose.empty()) filter = CLEW_TRY(WhoseFilter::make(chosen.whose));
  return ChosenFinder(chosen, std::move(filter)).run();
}

Expected<LaterProcesses> choose_later(const Chosen& chosen,
                                      const std::optional<std::vector<std::string>>& names) {
  LaterProcesses later;
  for (const std::string& module : chosen.modules)
    later.modules.push_back(CLEW_TRY(target::Pattern::compile(module)));
  std::shared_ptr<WhoseFilter> whose;
  if (!chosen.whose.empty())
    whose = std::make_shared<WhoseFilter>(CLEW_TRY(WhoseFilter::make(chosen.whose)));
  std::vector<target::Pattern> called;
  for (const std::string& name : names.value_or(std::vector<std::string>{}))
    called.push_back(CLEW_TRY(target::Pattern::compile(name)));
  later.is_meant = [whose, called, any = !names](pid_t pid) {
    const auto process = target::read_process(pid);
    if (!process) return any && !whose;
    if (target::is_of_this_program(pid) || (whose && !whose->holds(*process))) return false;
    return any || std::any_of(called.begin(), called.end(), [&process](const auto& name) {
             return target::is_called(*process, name);
           });
  };
  return later;
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
