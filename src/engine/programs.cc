// SPDX-License-Identifier: Apache-2.0
#include "engine/programs.h"

#include <algorithm>
#include <filesystem>
#include <utility>

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

// A pid may be another program's by now, in a process that nobody saw begin.
const Programs::Known* Programs::look(int64_t pid) {
  constexpr std::chrono::seconds kFresh{1};
  constexpr size_t kMost = 100'000;
  const auto known = known_.find(pid);
  const Known* const before = known == known_.end() ? nullptr : &known->second;
  const Time::time_point now = Time::now();
  if (before != nullptr && now - before->looked < kFresh) return before;
  const auto process = target::read_process(static_cast<pid_t>(pid));
  // One that has ended says nothing of what it was.
  if (!process || process->executable.empty()) return before;
  // A program that was started by a link has two names: redis-server leads to redis-check-rdb.
  const std::string name = target::program_name(*process);
  const std::string file = std::filesystem::path(process->executable).filename();
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const std::string& each) {
    return each == name || each == file;
  });
  const auto index = static_cast<size_t>(found - names_.begin());
  if (known_.size() >= kMost) known_.clear();
  Known& made = known_[pid];
  made = {.name = name,
          .profile = index < profiles_.size() ? std::optional(index) : std::nullopt,
          .looked = now};
  return &made;
}

const causal::Profile* Programs::of(int64_t pid) {
  const Known* const known = look(pid);
  return known == nullptr || !known->profile ? nullptr : &profiles_[*known->profile];
}

void Programs::forks(int64_t parent, int64_t child) {
  const Known* const known = look(parent);
  if (known == nullptr) return;
  // It is looked at once more, if it still can be.
  Known its = *known;
  its.looked = {};
  known_[child] = std::move(its);
}

std::string Programs::name_of(int64_t pid) {
  const Known* const known = look(pid);
  return known == nullptr ? "a program that has ended" : known->name;
}

}  // namespace clew::engine
