// SPDX-License-Identifier: Apache-2.0
#include "engine/record/heartbeats.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::engine {

namespace {

constexpr int kLooks = 4;  // Within the limit.
constexpr std::chrono::seconds kLookEveryMax{10};

}  // namespace

Expected<void> Heartbeats::start() {
  if (limit_.count() == 0) return {};
  const auto every = std::min<std::chrono::nanoseconds>(limit_ / kLooks, kLookEveryMax);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(every);
  itimerspec times{};
  times.it_interval = {.tv_sec = seconds.count(), .tv_nsec = (every - seconds).count()};
  times.it_value = times.it_interval;
  timer_ = FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (timer_.valid() && timerfd_settime(timer_.get(), 0, &times, nullptr) == 0) return {};
  return fail(ErrorCode::Io, fmt::format("a timer for heartbeats: {}", error_text(errno)));
}

bool Heartbeats::is_time() const {
  uint64_t times = 0;
  return timer_.valid() && read(timer_.get(), &times, sizeof(times)) == sizeof(times);
}

std::chrono::nanoseconds Heartbeats::lost(pid_t process, uint64_t written) {
  const auto now = std::chrono::steady_clock::now();
  const auto [place, is_new] = beats_.try_emplace(process);
  Beat& beat = place->second;
  if (is_new || beat.written != written) beat = {written, now};
  const auto since = now - beat.since;
  if (beat.is_told || since < limit_) return {};
  beat.is_told = true;
  return since;
}

}  // namespace clew::engine
