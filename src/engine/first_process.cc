// SPDX-License-Identifier: Apache-2.0
#include "engine/first_process.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "base/clock_ns.h"
#include "engine/begun_programs.h"
#include "engine/exec_watch.h"
#include "target/pattern.h"

namespace clew::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Time = std::chrono::steady_clock;

constexpr milliseconds kReadyPeriod{1};

// Of these, who is ready. One that has gone is not.
std::vector<pid_t> ready_of(const std::vector<pid_t>& pids, uint64_t seen_ns) {
  std::vector<pid_t> ready;
  for (const pid_t pid : pids) {
    BegunProgram program{.pid = pid, .time_ns = seen_ns, .name = {}};
    if (readiness_of(program) == Readiness::Ready) ready.push_back(pid);
  }
  return ready;
}

}  // namespace

Expected<std::vector<pid_t>> wait_for_first(const Chosen& chosen, int stop_descriptor,
                                            std::optional<nanoseconds> at_most) {
  const std::string what = fmt::format("'{}'", fmt::join(chosen.modules, "', '"));
  std::vector<target::Pattern> modules;
  for (const std::string& module : chosen.modules)
    modules.push_back(CLEW_TRY(target::Pattern::compile(module)));
  ExecWatch watch = ExecWatch::of({}, std::move(modules));
  if (!watch.is_told()) {
    return fail(ErrorCode::Refused,
                fmt::format("no process has {} mapped, and of those that come the kernel tells "
                            "root only",
                            what));
  }
  std::vector<pollfd> descriptors{{.fd = stop_descriptor, .events = POLLIN, .revents = 0}};
  for (const int notices : watch.descriptors())
    descriptors.push_back({.fd = notices, .events = POLLIN, .revents = 0});
  const auto begin = Time::now();
  std::vector<pid_t> waiting = CLEW_TRY(find_chosen(chosen));
  auto seen_ns = static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
  while (true) {
    std::vector<pid_t> ready = ready_of(waiting, seen_ns);
    if (!ready.empty()) return ready;
    nanoseconds patience = waiting.empty() ? nanoseconds::max() : nanoseconds(kReadyPeriod);
    if (at_most) patience = std::min<nanoseconds>(patience, begin + *at_most - Time::now());
    const bool is_over = patience < nanoseconds::zero();
    const timespec time{.tv_sec = patience.count() / 1'000'000'000,
                        .tv_nsec = patience.count() % 1'000'000'000};
    const bool is_endless = patience == nanoseconds::max();
    if (!is_over)
      (void)ppoll(descriptors.data(), descriptors.size(), is_endless ? nullptr : &time, nullptr);
    if (is_over || descriptors[0].revents != 0) {
      return fail(ErrorCode::NotFound, fmt::format("no process had {} mapped until the end", what));
    }
    if (watch.look().empty() && !waiting.empty()) continue;
    waiting = CLEW_TRY(find_chosen(chosen));
    seen_ns = static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
  }
}

}  // namespace clew::engine
