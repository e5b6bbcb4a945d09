// SPDX-License-Identifier: Apache-2.0
#include "engine/exec_watch.h"

#include <algorithm>
#include <utility>

namespace clew::engine {

ExecWatch ExecWatch::of(const std::vector<pid_t>& pids, std::vector<target::Pattern> modules) {
  using Wanted = kernel::ProcessNotices::Wanted;
  ExecWatch watch;
  watch.processes_.insert(pids.begin(), pids.end());
  auto notices = kernel::ProcessNotices::open(modules.empty() ? Wanted::Tasks : Wanted::All);
  if (notices) watch.notices_.emplace(std::move(*notices));
  watch.modules_ = std::move(modules);
  return watch;
}

std::vector<int> ExecWatch::descriptors() const {
  return notices_ ? notices_->descriptors() : std::vector<int>{};
}

std::vector<BegunProgram> ExecWatch::look() {
  std::vector<BegunProgram> begun;
  if (!notices_) return begun;
  for (kernel::ProcessNotice& notice : notices_->read(is_lossy_))
    look_at(notice, begun);
  return begun;
}

void ExecWatch::look_at(kernel::ProcessNotice& notice, std::vector<BegunProgram>& begun) {
  using Kind = kernel::ProcessNotice::Kind;
  const bool is_fork = notice.kind == Kind::Fork;
  const bool is_ours = processes_.contains(is_fork ? notice.parent : notice.pid);
  if (is_ours && is_fork) processes_.insert(notice.pid);
  if (is_ours && notice.kind == Kind::End) processes_.erase(notice.pid);
  if (is_ours && notice.kind == Kind::Exec) {
    begun.push_back({notice.pid, notice.time_ns, std::move(notice.name)});
  } else if (is_wanted(notice)) {
    begun.push_back({.pid = notice.pid,
                     .time_ns = notice.time_ns,
                     .name = std::move(notice.name),
                     .has_module = true});
  }
}

// Of the program, what it was called, too: its file may have another name.
bool ExecWatch::is_wanted(const kernel::ProcessNotice& notice) const {
  using Kind = kernel::ProcessNotice::Kind;
  return std::any_of(modules_.begin(), modules_.end(), [&notice](const target::Pattern& module) {
    if (notice.kind == Kind::Exec) return module.matches(notice.name);
    return notice.kind == Kind::Map && target::is_of_module(notice.mapping, module);
  });
}

std::vector<std::string> ExecWatch::told() const {
  const std::string what = modules_.empty() ? "programs that children began by exec"
                                            : "processes that got the module during the session";
  std::vector<std::string> all;
  if (!notices_) all.push_back(what + " are not traced; how many, the kernel tells root only");
  if (is_lossy_) all.push_back("some of the " + what + " were not seen");
  return all;
}

}  // namespace clew::engine
