// SPDX-License-Identifier: Apache-2.0
#include "engine/exec_watch.h"

#include <utility>

namespace clew::engine {

ExecWatch ExecWatch::of(const std::vector<pid_t>& pids) {
  ExecWatch watch;
  watch.processes_.insert(pids.begin(), pids.end());
  auto notices = kernel::ProcessNotices::open(kernel::ProcessNotices::Wanted::Tasks);
  if (notices) watch.notices_.emplace(std::move(*notices));
  return watch;
}

std::vector<int> ExecWatch::descriptors() const {
  return notices_ ? notices_->descriptors() : std::vector<int>{};
}

std::vector<BegunProgram> ExecWatch::look() {
  using Kind = kernel::ProcessNotice::Kind;
  std::vector<BegunProgram> begun;
  if (!notices_) return begun;
  for (kernel::ProcessNotice& notice : notices_->read(is_lossy_)) {
    const bool is_ours =
        processes_.contains(notice.kind == Kind::Fork ? notice.parent : notice.pid);
    if (!is_ours) continue;
    if (notice.kind == Kind::Fork) processes_.insert(notice.pid);
    if (notice.kind == Kind::End) processes_.erase(notice.pid);
    if (notice.kind == Kind::Exec)
      begun.push_back({notice.pid, notice.time_ns, std::move(notice.name)});
  }
  return begun;
}

std::vector<std::string> ExecWatch::told() const {
  std::vector<std::string> all;
  if (!notices_) {
    all.emplace_back(
        "programs that children began by exec are not traced; how many, the kernel tells root "
        "only");
  }
  if (is_lossy_) all.emplace_back("some of the programs that children began were not seen");
  return all;
}

}  // namespace clew::engine
