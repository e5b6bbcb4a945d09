// SPDX-License-Identifier: Apache-2.0
#include "inline/forked_children.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include <sys/stat.h>

#include "inline/attachment_state.h"

namespace clew::inline_ {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBrief{100};      // For one of them to stop,
constexpr std::chrono::milliseconds kInBetween{500};  // and for all.

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator("/proc", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ptr == name.data() + name.size()) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// A tracer maps the file, too, but not the low block.
bool has_file_of_arena(std::span<const target::Mapping> maps, const struct stat& file) {
  const auto mapping = find_arena(maps);
  return mapping && mapping->inode == file.st_ino && mapping->low_address != 0;
}

bool has_file_of_arena(pid_t pid, const struct stat& file) {
  const auto maps = target::read_memory_map(pid);
  return maps && has_file_of_arena(*maps, file);
}

}  // namespace

bool has_arena(std::span<const target::Mapping> maps, const Arena& arena) {
  struct stat file = {};
  return arena.shared() && fstat(arena.code_file(), &file) == 0 && has_file_of_arena(maps, file);
}

std::vector<pid_t> children_with(const Arena& arena, pid_t first) {
  return ForkedChildren(arena, first).look();
}

std::vector<pid_t> ForkedChildren::look() {
  std::vector<pid_t> found;
  struct stat file = {};
  if (!arena_.shared() || fstat(arena_.code_file(), &file) != 0) return found;
  for (const pid_t pid : all_processes()) {
    const bool is_new = pid != first_ && seen_.insert(pid).second;
    // By vfork, say: not a memory of its own.
    if (is_new && has_file_of_arena(pid, file) && !shares_memory(first_, pid)) found.push_back(pid);
  }
  return found;
}

bool ForkedChildren::runs_on_memory_of_stopped(pid_t pid) const {
  return std::any_of(stopped_.begin(), stopped_.end(),
                     [pid](const StoppedTarget& other) { return shares_memory(other.pid(), pid); });
}

void ForkedChildren::stop(std::span<const pid_t> pids, std::chrono::milliseconds timeout) {
  for (const pid_t pid : pids) {
    if (runs_on_memory_of_stopped(pid)) continue;  // Stopped with that one.
    auto target = stop_target(pid, timeout);
    if (target) {
      stopped_.push_back(std::move(*target));
    } else if (target.error().code != ErrorCode::NotFound) {
      unstopped_.push_back({.pid = pid, .reason = target.error().message});
    }
  }
}

bool ForkedChildren::stop_those_in_between() {
  const Clock::time_point deadline = Clock::now() + kInBetween;
  std::vector<pid_t> pids = look();
  for (; !pids.empty() && Clock::now() < deadline; pids = look())
    stop(pids, kBrief);
  return pids.empty() && unstopped_.empty();
}

}  // namespace clew::inline_
