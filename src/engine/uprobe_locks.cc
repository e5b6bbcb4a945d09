// SPDX-License-Identifier: Apache-2.0
#include "engine/uprobe_locks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "target/process.h"

namespace clew::engine {
namespace {

// Descriptors are few: of processes beyond that, those with lower pids are taken.
constexpr size_t kLocksMax = 512;
constexpr std::chrono::milliseconds kBrief{500};  // For all processes that nobody named.

// By inode alone: where a file system makes up devices (btrfs, overlayfs), stat(2) and a process's
// maps tell two. A file too many is one lock too many; one too few is a process that may die.
bool maps_one_of(pid_t pid, const std::set<uint64_t>& inodes) {
  const auto maps = target::read_memory_map(pid);
  return maps && std::any_of(maps->begin(), maps->end(), [&](const target::Mapping& map) {
           return map.executable && inodes.contains(map.inode);
         });
}

// By pid, and whether a probe names it.
std::map<pid_t, bool> processes_of(std::span<const kernel::MachineEnabling> enablings) {
  std::map<pid_t, bool> pids;
  std::set<uint64_t> inodes;
  for (const kernel::MachineEnabling& enabling : enablings) {
    const kernel::Probe& probe = enabling.probe;
    if (!kernel::needs_uprobe(probe.kind)) continue;
    if (probe.pid != 0) pids[static_cast<pid_t>(probe.pid)] = true;
    if (probe.pid != 0 && !probe.is_everywhere) continue;
    struct stat file = {};
    if (stat(probe.path.c_str(), &file) == 0) inodes.insert(file.st_ino);
  }
  if (inodes.empty()) return pids;
  const auto all = target::find_processes("*");
  for (size_t i = 0; all && i < all->size() && pids.size() < kLocksMax; ++i) {
    if (maps_one_of((*all)[i].pid(), inodes)) pids.emplace((*all)[i].pid(), false);
  }
  return pids;
}

}  // namespace

Expected<void> UprobeLocks::hold(std::span<const kernel::MachineEnabling> enablings) {
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds left = kBrief;
  for (const auto& [pid, is_named] : processes_of(enablings)) {
    const auto lock = is_named ? of(pid) : passing(pid, left);
    const Clock::time_point begin = Clock::now();
    auto held = lock->hold();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    if (!is_named) left = std::max(left - waited, std::chrono::milliseconds(0));
    if (held) {
      holds_.push_back(std::move(*held));
    } else if (held.error().code == ErrorCode::Io && is_named) {
      return tl::unexpected(held.error());
    } else if (held.error().code == ErrorCode::Io && wait_.tell) {
      wait_.tell(held.error().message);
    }
  }
  return {};
}

Expected<bool> UprobeLocks::try_hold(std::span<const kernel::MachineEnabling> enablings,
                                     std::chrono::steady_clock::duration waited) {
  for (const auto& [pid, is_named] : processes_of(enablings)) {
    auto held = of(pid)->try_hold();
    if (!held) continue;  // Gone, or not to be traced.
    if (*held) {
      holds_.push_back(std::move(**held));
      continue;
    }
    const auto most = is_named ? wait_.timeout : kBrief;
    if (waited < most) {
      let_go();
      return false;
    }
    const auto problem = fmt::format("another session changes process {}", pid);
    if (is_named) return fail(ErrorCode::Io, problem);
    if (wait_.tell) wait_.tell(problem);
  }
  return true;
}

// One that maps a file with probes, and that nobody asked for: whoever may trace it can hold its
// lock, or those of many, and must not keep all others from being traced.
std::shared_ptr<inline_::ProcessLock> UprobeLocks::passing(
    pid_t pid, std::chrono::milliseconds timeout) const {
  inline_::LockWait wait = wait_;
  wait.timeout = timeout;
  auto& lock = locks_[pid];
  if (lock == nullptr) lock = std::make_shared<inline_::ProcessLock>(pid, std::move(wait));
  return lock;
}

std::shared_ptr<inline_::ProcessLock> UprobeLocks::of(pid_t pid) const {
  auto& lock = locks_[pid];
  if (lock == nullptr) lock = std::make_shared<inline_::ProcessLock>(pid, wait_);
  return lock;
}

}  // namespace clew::engine
