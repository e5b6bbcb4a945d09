// SPDX-License-Identifier: Apache-2.0
#include "engine/record/leaving.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/record/thread_status.h"
#include "inline/attachment.h"
#include "inline/is_recorded.h"
#include "target/process.h"

namespace clew::engine {

Expected<void> check_recordable(pid_t pid) {
  const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
  if (const pid_t process = status_of(pid).process; process != pid && process != 0) {
    return fail(ErrorCode::Refused, fmt::format("{} is a thread of process {}: clew record -p {}",
                                                pid, process, process));
  }
  if (inline_::is_recorded(pid)) {
    const pid_t recorder = facts.tracer_pid != 0 ? facts.tracer_pid : inline_::recorder_of(pid);
    if (recorder != 0) {
      return fail(
          ErrorCode::Refused,
          fmt::format("process {} is recorded already, by process {} [recorded]", pid, recorder));
    }
  }
  CLEW_TRY(inline_::check_can_open(pid));
  if (facts.seccomp != target::ProcessFacts::Seccomp::Off) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} filters its system calls [seccomp]", pid));
  }
  return check_numbers(pid);
}

Expected<void> check_numbers(pid_t pid) {
  const target::ProcessFacts facts = CLEW_TRY(target::read_facts(pid));
  if (facts.namespace_pids.size() == 1) return {};
  return fail(ErrorCode::Refused,
              fmt::format("process {} and its threads have other numbers for themselves "
                          "[pid-namespace]",
                          pid));
}

namespace {

bool has_living_thread(pid_t process, const std::function<bool(const ThreadStatus&)>& is_wanted) {
  const std::vector<pid_t> threads = threads_of(process);
  return std::any_of(threads.begin(), threads.end(), [&](pid_t thread) {
    const ThreadStatus status = status_of(thread);
    return !status.has_ended() && is_wanted(status);
  });
}

}  // namespace

bool lives(pid_t process) {
  return has_living_thread(process, [](const ThreadStatus&) { return true; });
}

bool is_watched(pid_t process) {
  return has_living_thread(process,
                           [](const ThreadStatus& status) { return status.tracer == getpid(); });
}

// A process that has not been left may have made another one.
Expected<void> Leaving::run() {
  constexpr unsigned kRoundsMax = 100;
  std::optional<Error> first;
  for (unsigned round = 0; round < kRoundsMax; ++round) {
    const RecordedProcesses others = find_others();
    if (others.empty()) break;
    for (const auto& [process, recorded] : others) {
      seen_.insert(process);
      Expected<void> left = leave(*recorded, process);
      if (!left && !first) first = std::move(left.error());
    }
  }
  if (first) return tl::unexpected(std::move(*first));
  return {};
}

RecordedProcesses Leaving::find_others() const {
  RecordedProcesses found = recorded_;
  std::set<const RecordedProcess*> asked;
  for (const auto& [process, recorded] : recorded_) {
    if (!asked.insert(recorded.get()).second) continue;  // It answers for all that share it.
    for (const pid_t child : recorded->children())
      found.emplace(child, recorded);
  }
  std::erase_if(found, [this](const auto& one) { return seen_.contains(one.first); });
  return found;
}

// One that waits in vfork, or for a disk, is waited for.
Expected<void> Leaving::leave(RecordedProcess& recorded, pid_t process) {
  constexpr unsigned kTriesMax = 100;
  constexpr std::chrono::milliseconds kPause{50};
  if (runs_on_its_parents_memory(process)) return {};  // It is left with that one.
  for (unsigned tried = 1;; ++tried) {
    Expected<void> left = recorded.leave(process, is_watched(process) ? &stops_ : nullptr);
    stops_.let_go(process);
    if (left || !lives(process)) return {};
    if (tried < kTriesMax) {
      stops_.let_all_go(kPause);
      continue;
    }
    return fail(ErrorCode::Io,
                fmt::format("process {} runs on, and its functions on copies: {} (clew detach {} "
                            "leads calls to the originals)",
                            process, left.error().message, process));
  }
}

}  // namespace clew::engine
