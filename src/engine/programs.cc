// SPDX-License-Identifier: Apache-2.0
#include "engine/programs.h"

#include <algorithm>
#include <filesystem>

#include "target/process.h"

namespace clew::engine {

Programs::Programs(std::span<const query::Program> programs, causal::EdgeClass least) {
  for (const query::Program& each : programs) {
    if (each.profile.how > least) continue;
    profiles_.push_back(each.profile);
    names_.push_back(each.name);
  }
  if (least >= causal::EdgeClass::Heuristic) profiles_.emplace_back();
}

const causal::Profile* Programs::profile_of(int64_t pid) {
  auto known = known_.find(pid);
  if (known == known_.end()) {
    const auto process = target::read_process(static_cast<pid_t>(pid));
    if (!process) return nullptr;
    // A program that was started by a link has two names: redis-server leads to redis-check-rdb.
    const std::string name = target::program_name(*process);
    const std::string file = std::filesystem::path(process->executable).filename();
    const auto found = std::find_if(names_.begin(), names_.end(), [&](const std::string& each) {
      return each == name || each == file;
    });
    const auto index = static_cast<size_t>(found - names_.begin());
    known =
        known_.emplace(pid, index < profiles_.size() ? std::optional(index) : std::nullopt).first;
  }
  return known->second ? &profiles_[*known->second] : nullptr;
}

}  // namespace clew::engine
