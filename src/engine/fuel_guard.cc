// SPDX-License-Identifier: Apache-2.0
#include "engine/fuel_guard.h"

#include <fmt/format.h>

namespace clew::engine {

void FuelGuard::add(uint32_t word, const std::string& name, uint64_t body) {
  Probe& probe = probes_[word];
  probe.names.insert(name);
  probe.bodies.push_back(body);
}

collect::DisarmedProbe FuelGuard::describe(const Probe& probe, pid_t process, uint64_t exhausted) {
  std::string name = *probe.names.begin();
  if (probe.names.size() > 1) name += fmt::format(" and {} more", probe.names.size() - 1);
  return {.probe = std::move(name), .process = process, .exhausted = exhausted};
}

std::vector<collect::DisarmedProbe> FuelGuard::look(inline_::Attachment& attachment,
                                                    std::span<const uint64_t> counts,
                                                    std::vector<std::string>& problems) {
  std::vector<collect::DisarmedProbe> found;
  std::vector<uint64_t> bodies;
  std::vector<Probe*> leaving;
  for (auto& [word, probe] : probes_) {
    const bool is_left = probe.is_disarmed || probe.is_left || word >= counts.size();
    if (is_left || counts[word] < kExhaustedMax) continue;
    leaving.push_back(&probe);
    bodies.insert(bodies.end(), probe.bodies.begin(), probe.bodies.end());
    found.push_back(describe(probe, attachment.pid(), counts[word]));
  }
  if (leaving.empty()) return found;
  // Threads leave such a probe alone by themselves: there is time to wait for another session.
  const auto hold = attachment.try_hold();
  if (hold && !*hold) return {};
  const auto done = attachment.disarm(bodies);
  for (Probe* probe : leaving)
    (done ? probe->is_disarmed : probe->is_left) = true;
  if (done) return found;
  problems.push_back(
      fmt::format("{} in process {} was out of fuel {} times, and could not be disarmed: {}",
                  found[0].probe, attachment.pid(), found[0].exhausted, done.error().message));
  return {};
}

std::vector<collect::DisarmedProbe> FuelGuard::disarmed(pid_t process,
                                                        std::span<const uint64_t> counts) const {
  std::vector<collect::DisarmedProbe> found;
  for (const auto& [word, probe] : probes_) {
    if (probe.is_disarmed && word < counts.size())
      found.push_back(describe(probe, process, counts[word]));
  }
  return found;
}

}  // namespace clew::engine
