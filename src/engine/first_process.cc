// SPDX-License-Identifier: Apache-2.0
#include "engine/first_process.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "base/clock_ns.h"
#include "engine/begun_programs.h"
#include "engine/exec_watch.h"
#include "target/pattern.h"
#include "target/process.h"

namespace clew::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Time = std::chrono::steady_clock;

constexpr milliseconds kReadyPeriod{1};

// Of these, who is ready; those that have gone are no longer among them.
std::vector<pid_t> take_ready(std::vector<BegunProgram>& waiting) {
  std::vector<pid_t> ready;
  std::erase_if(waiting, [&ready](BegunProgram& program) {
    const Readiness now = readiness_of(program);
    if (now == Readiness::Ready) ready.push_back(program.pid);
    return now == Readiness::Gone;
  });
  return ready;
}

void add_to(std::vector<BegunProgram>& waiting, const std::vector<pid_t>& pids) {
  const auto now_ns = static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
  for (const pid_t pid : pids) {
    const bool is_there = std::any_of(waiting.begin(), waiting.end(),
                                      [pid](const auto& one) { return one.pid == pid; });
    if (!is_there) waiting.push_back({.pid = pid, .time_ns = now_ns, .name = {}});
  }
}

// False when that is over, or time is.
bool wait_for_news(std::vector<pollfd>& descriptors, nanoseconds patience) {
  const timespec time{.tv_sec = patience.count() / 1'000'000'000,
                      .tv_nsec = patience.count() % 1'000'000'000};
  const bool is_endless = patience == nanoseconds::max();
  if (patience < nanoseconds::zero()) return false;
  (void)ppoll(descriptors.data(), descriptors.size(), is_endless ? nullptr : &time, nullptr);
  return descriptors[0].revents == 0;
}

}  // namespace

Expected<std::vector<pid_t>> wait_for_first(const Chosen& chosen, int stop_descriptor,
                                            std::optional<nanoseconds> at_most) {
  const std::string what = fmt::format("'{}'", fmt::join(chosen.modules, "', '"));
  std::vector<target::Pattern> modules;
  modules.reserve(chosen.modules.size());
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
  std::vector<BegunProgram> waiting;
  add_to(waiting, CLEW_TRY(find_chosen(chosen)));
  while (true) {
    std::vector<pid_t> ready = take_ready(waiting);
    if (!ready.empty()) return ready;
    nanoseconds patience = waiting.empty() ? nanoseconds::max() : nanoseconds(kReadyPeriod);
    if (at_most) patience = std::min<nanoseconds>(patience, begin + *at_most - Time::now());
    if (!wait_for_news(descriptors, patience))
      return fail(ErrorCode::NotFound, fmt::format("no process had {} mapped until the end", what));
    if (!watch.look().empty()) add_to(waiting, CLEW_TRY(find_chosen(chosen)));
  }
}

bool is_any_over(std::span<const pid_t> pids) {
  return std::any_of(pids.begin(), pids.end(), [](pid_t pid) {
    const auto life = target::read_life(pid);
    if (!life) return true;
    if (life->state != 'Z' && life->state != 'X') return false;
    // Its first thread may have left the others.
    std::error_code error;
    const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid), error);
    return error || std::distance(begin(threads), end(threads)) <= 1;
  });
}

}  // namespace clew::engine
