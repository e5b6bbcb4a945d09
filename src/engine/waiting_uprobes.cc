// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting_uprobes.h"

#include <iterator>

#include "engine/uprobe_locks.h"
#include "engine/uprobe_places.h"

namespace clew::engine {

using SteadyClock = std::chrono::steady_clock;

void WaitingUprobes::add(std::vector<kernel::MachineEnabling> enablings) {
  if (enablings.empty()) return;
  if (enablings_.empty()) since_ = SteadyClock::now();
  std::move(enablings.begin(), enablings.end(), std::back_inserter(enablings_));
}

Expected<void> WaitingUprobes::set(kernel::MachineSession& session) {
  if (enablings_.empty()) return {};
  UprobeLocks locks(wait_);
  const Expected<bool> held = locks.try_hold(enablings_, SteadyClock::now() - since_);
  if (held && !*held) return {};
  std::vector<kernel::MachineEnabling> enablings = std::exchange(enablings_, {});
  const Expected<void> places =
      held ? check_uprobe_places(enablings, {}) : Expected<void>(tl::unexpected(held.error()));
  Expected<void> done = places ? session.add(std::move(enablings)) : places;
  const bool is_gone = !done && done.error().code == ErrorCode::NotFound;
  return is_gone ? Expected<void>() : done;
}

std::chrono::nanoseconds WaitingUprobes::patience() const {
  constexpr std::chrono::milliseconds kLockPeriod{5};
  return enablings_.empty() ? std::chrono::nanoseconds::max() : kLockPeriod;
}

}  // namespace clew::engine
