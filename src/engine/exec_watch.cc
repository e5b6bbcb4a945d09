// SPDX-License-Identifier: Apache-2.0
#include "engine/exec_watch.h"

#include <utility>

#include <fmt/format.h>

namespace clew::engine {
namespace {

constexpr size_t kNamesMax = 5;  // Of programs in the sentence.
constexpr size_t kProgramsMax = 1000;

}  // namespace

ExecWatch ExecWatch::of(const std::vector<pid_t>& pids) {
  ExecWatch watch;
  watch.roots_.insert(pids.begin(), pids.end());
  auto notices = kernel::ProcessNotices::open(kernel::ProcessNotices::Wanted::Tasks);
  if (notices) watch.notices_.emplace(std::move(*notices));
  return watch;
}

void ExecWatch::look() {
  if (!notices_) return;
  for (const kernel::ProcessNotice& notice : notices_->read(is_lossy_))
    take(notice);
}

void ExecWatch::take(const kernel::ProcessNotice& notice) {
  using Kind = kernel::ProcessNotice::Kind;
  const bool is_child = children_.contains(notice.pid);
  if (notice.kind == Kind::Fork) {
    const bool is_ours = roots_.contains(notice.parent) || children_.contains(notice.parent);
    if (is_ours) children_.insert(notice.pid);
  }
  if (notice.kind == Kind::End) children_.erase(notice.pid);
  if (notice.kind != Kind::Exec || !is_child) return;
  ++count_;
  if (programs_.size() < kProgramsMax) ++programs_[notice.name];
}

std::vector<std::string> ExecWatch::told() const {
  std::vector<std::string> all;
  if (!notices_) {
    all.emplace_back(
        "programs that children began by exec are not traced; how many, the kernel tells root "
        "only");
  }
  if (is_lossy_) all.emplace_back("some of the programs that children began were not seen");
  if (count_ == 0) return all;
  std::string names;
  size_t shown = 0;
  for (const auto& [name, times] : programs_) {
    if (shown++ == kNamesMax) break;
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", name,
                         times == 1 ? "" : fmt::format(" ({} times)", times));
  }
  if (programs_.size() > kNamesMax)
    names += fmt::format(" and {} more", programs_.size() - kNamesMax);
  all.push_back(fmt::format("children began {} other program{}, which --follow does not trace: {}",
                            count_, count_ == 1 ? "" : "s", names));
  return all;
}

}  // namespace clew::engine
