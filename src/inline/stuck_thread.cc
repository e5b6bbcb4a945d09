// SPDX-License-Identifier: Apache-2.0
#include "inline/stuck_thread.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "inline/brief_wait.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

using Clock = std::chrono::steady_clock;

// A sleep of a thread: how often it had gone to sleep by then.
struct Sleep {
  pid_t tid = 0;
  std::string switches;

  bool operator==(const Sleep&) const = default;
};

// The one that it is in, in state D; none when it is in another state, or gone.
std::optional<Sleep> deep_sleep_of(pid_t pid, pid_t tid) {
  std::ifstream status(fmt::format("/proc/{}/task/{}/status", pid, tid));
  bool is_deep = false;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:")) is_deep = line.find("\tD") != std::string::npos;
    if (line.starts_with("voluntary_ctxt_switches:") && is_deep) return Sleep{tid, line};
  }
  return std::nullopt;
}

}  // namespace

std::optional<pid_t> find_stuck_thread(pid_t pid, std::chrono::milliseconds time) {
  constexpr std::chrono::microseconds kPause{1000};
  std::vector<Sleep> asleep;
  for (const pid_t tid : target::list_threads(pid).value_or(std::vector<pid_t>{})) {
    if (auto sleep = deep_sleep_of(pid, tid)) asleep.push_back(std::move(*sleep));
  }
  const Clock::time_point deadline = Clock::now() + time;
  const auto woke = [pid](const Sleep& sleep) { return deep_sleep_of(pid, sleep.tid) != sleep; };
  while (true) {
    std::erase_if(asleep, woke);
    if (asleep.empty()) return std::nullopt;
    if (Clock::now() > deadline) return asleep.front().tid;
    wait_briefly(kPause);
  }
}

}  // namespace clew::inline_
