// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/open_syscalls.h"

#include <fstream>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "target/process.h"

namespace clew::engine {
namespace {

// "NR a1 … SP PC", "-1 SP PC" outside of a call, "running". One that may not be read says nothing.
bool may_be_in(pid_t tid, uint32_t number) {
  std::ifstream file(fmt::format("/proc/{}/syscall", tid));
  std::string first;
  if (!(file >> first) || first == "running") return true;
  return first == std::to_string(number);
}

// Of CLOCK_MONOTONIC, to which the time that the machine slept is no part.
int64_t start_ns(const target::Process& thread) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  const int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
  const auto ticks = static_cast<int64_t>(thread.incarnation.start_ticks);
  const int64_t asleep_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
  return ticks * (kNsPerSecond / ticks_per_second) - asleep_ns;
}

std::optional<pid_t> process_of(pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/status", tid));
  constexpr std::streamsize kLineMax = std::numeric_limits<std::streamsize>::max();
  for (std::string name; file >> name; file.ignore(kLineMax, '\n')) {
    pid_t pid = 0;
    if (name == "Tgid:" && file >> pid) return pid;
  }
  return std::nullopt;
}

}  // namespace

std::optional<pid_t> process_in_call(pid_t tid, uint32_t number, uint64_t entry_ns) {
  if (number == SYS_rt_sigreturn) return std::nullopt;
  const Expected<target::Process> thread = target::read_process(tid);
  if (!thread || thread->state == 'Z' || thread->state == 'X') return std::nullopt;
  if (start_ns(*thread) > static_cast<int64_t>(entry_ns)) return std::nullopt;
  if (!may_be_in(tid, number)) return std::nullopt;
  return process_of(tid);
}

}  // namespace clew::engine
