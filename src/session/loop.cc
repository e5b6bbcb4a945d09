// SPDX-License-Identifier: Apache-2.0
#include "session/loop.h"

#include <algorithm>
#include <iterator>

#include <poll.h>

namespace clew::session {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kHousePeriod = std::chrono::milliseconds(200);

}  // namespace

bool Loop::wait(int stop_descriptor, Time::time_point until) {
  std::vector<pollfd> descriptors{{.fd = stop_descriptor, .events = POLLIN, .revents = 0}};
  nanoseconds patience = kHousePeriod;
  for (Driven* each : driven_) {
    each->add_descriptors(descriptors);
    patience = std::min(patience, each->patience());
  }
  patience = std::clamp(nanoseconds(until - Time::now()), nanoseconds(0), patience);
  const timespec timeout{.tv_sec = patience.count() / 1'000'000'000,
                         .tv_nsec = patience.count() % 1'000'000'000};
  (void)ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
  return (descriptors[0].revents & POLLIN) == 0;
}

Expected<void> Loop::give_turns() {
  for (Driven* each : driven_)
    CLEW_TRY(each->turn());
  return {};
}

std::vector<collect::DisarmedProbe> Loop::disarm_spinning() {
  std::vector<collect::DisarmedProbe> all;
  for (Driven* each : driven_) {
    std::vector<collect::DisarmedProbe> some = each->disarm_spinning();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

bool Loop::keep_house() {
  if (Time::now() - house_ < kHousePeriod) return false;
  house_ = Time::now();
  for (Driven* each : driven_)
    each->keep_house();
  return true;
}

}  // namespace clew::session
