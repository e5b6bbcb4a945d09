// SPDX-License-Identifier: Apache-2.0
// What the session of a process misses and costs, and the probes that go for it.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/tracee.h"

namespace clew::engine {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

}  // namespace

std::vector<collect::DisarmedProbe> Tracee::disarm_spinning() {
  if (fuel_guard_.empty() || detached_) return {};
  return fuel_guard_.look(*attachment_, reader_->read_fuel(), lost_);
}

bool Tracee::is_sampled_as(pid_t pid) const {
  const bool is_ours =
      pid == pid_ || std::any_of(children_.begin(), children_.end(),
                                 [pid](const auto& child) { return child.second.pid == pid; });
  // Last: it asks the process.
  return is_ours && !detached_ && (!gone() || has_ended());
}

std::vector<collect::DisarmedProbe> Tracee::keep_below(const OverheadBound& bound) {
  if (gone() || detached_) return {};
  return probe_costs_.keep_below(bound, *attachment_, lost_);
}

collect::Losses Tracee::losses() {
  collect::Losses losses;
  if (lost_at_end_) {
    losses = *lost_at_end_;
  } else {
    reader_->add_losses(losses);
  }
  collect::subtract(losses.missed, lost_before_.missed);
  collect::subtract(losses.dropped, lost_before_.dropped);
  for (const auto& [cause, count] : open_missed_)
    collect::count_cause(losses.missed, cause, count);
  losses.open = open_;
  losses.lost = lost_;
  if (gone_modules_ != 0) {
    losses.lost.push_back(
        fmt::format("process {} closed libraries before their probes were there ({}{}): calls in "
                    "them may be missing",
                    pid_, first_gone_,
                    gone_modules_ == 1 ? "" : fmt::format(", and {} more", gone_modules_ - 1)));
  }
  if (!attachment_->serves_later_threads() && losses.missed.contains(collect::kMissedNoSlot)) {
    losses.lost.push_back(
        fmt::format("process {} forbids itself arch_prctl, and this machine allows no other way to "
                    "a slot: threads that it made during the session are not counted",
                    pid_));
  }
  if (!fuel_guard_.empty()) losses.disarmed = fuel_guard_.disarmed(pid_, reader_->read_fuel());
  const std::vector<collect::DisarmedProbe>& taken_out = probe_costs_.taken_out();
  losses.disarmed.insert(losses.disarmed.end(), taken_out.begin(), taken_out.end());
  losses.cost.processes.push_back(probe_costs_.cost(pid_));
  losses.cost.stops = attachment_->stops().count;
  losses.cost.stopped_ms = Milliseconds(attachment_->stops().all).count();
  losses.refused = sites_.refused;
  losses.left_by_jump.assign(left_by_jump_.begin(), left_by_jump_.end());
  losses.sites = report_.points;
  losses.stopped_ms = Milliseconds(attachment_->stops().longest).count();
  losses.processes = 1;
  return losses;
}

}  // namespace clew::engine
