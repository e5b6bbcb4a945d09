// SPDX-License-Identifier: Apache-2.0
#include "engine/programs.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "target/process.h"

namespace clew::engine {

Programs::Programs(std::span<const query::Program> programs, causal::EdgeClass least)
    : tables_(programs.begin(), programs.end()), least_(least) {}

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
  const auto found = std::find_if(tables_.begin(), tables_.end(), [&](const auto& each) {
    return each.name == name || each.name == file;
  });
  if (known_.size() >= kMost) known_.clear();
  Known& made = known_[pid];
  made = {.name = name, .table = std::nullopt, .looked = now};
  if (found == tables_.end()) return &made;
  made.name = found->name;
  made.table = static_cast<size_t>(found - tables_.begin());
  return &made;
}

const causal::Profile* Programs::of(int64_t pid) {
  const Known* const known = look(pid);
  return known == nullptr ? nullptr : believed(*known);
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

bool Programs::follows_pipes(int64_t pid) {
  const causal::Profile* const profile = of(pid);
  return profile != nullptr && profile->follows_pipes;
}

bool Programs::may_follow_pipes() const {
  return std::any_of(tables_.begin(), tables_.end(), [this](const query::Program& each) {
    return each.profile.follows_pipes && each.profile.how <= least_;
  });
}

bool Programs::is_guessed(int64_t pid) {
  const Known* const known = look(pid);
  return known != nullptr && known->table && believed(*known) == nullptr;
}

const causal::Profile* Programs::believed(const Known& known) const {
  const causal::Profile& profile = known.table ? tables_[*known.table].profile : rest_;
  return profile.how <= least_ ? &profile : nullptr;
}

std::string Programs::describe(const Known& known) const {
  const bool is_believed = believed(known) != nullptr;
  const std::string_view none = is_believed ? "" : ": requests end there";
  if (known.table) {
    return fmt::format("{}{}{}", query::describe(tables_[*known.table].profile),
                       is_believed ? "" : ", not believed", none);
  }
  const std::string_view what = "no [[program]] says what it does with messages";
  if (!is_believed) return fmt::format("{}{}", what, none);
  return fmt::format("{}: {}", what, query::describe(rest_));
}

Programs::Said Programs::say(int64_t pid) {
  const Known* const known = look(pid);
  if (known == nullptr) return {.name = name_of(pid), .text = "nothing is known of it"};
  return {.name = known->name,
          .text = describe(*known),
          .table = known->table ? &tables_[*known->table] : nullptr,
          .is_believed = believed(*known) != nullptr};
}

std::vector<std::string> Programs::describe(std::span<const int64_t> pids) {
  struct Group {
    const Known* known;
    std::vector<int64_t> pids;
  };
  std::vector<Group> groups;
  for (const int64_t pid : pids) {
    const Known* const known = look(pid);
    if (known == nullptr) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [known](const Group& each) {
      return each.known->name == known->name && each.known->table == known->table;
    });
    if (same != groups.end()) {
      same->pids.push_back(pid);
    } else {
      groups.push_back({.known = known, .pids = {pid}});
    }
  }
  std::vector<std::string> lines;
  for (const Group& each : groups) {
    const std::string which = each.pids.size() == 1 ? std::to_string(each.pids[0])
                                                    : fmt::format("{} processes", each.pids.size());
    lines.push_back(fmt::format("{} ({}): {}", each.known->name, which, describe(*each.known)));
  }
  return lines;
}

}  // namespace clew::engine
