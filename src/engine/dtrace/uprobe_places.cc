// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/uprobe_places.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "inline/attachment.h"
#include "target/process.h"

namespace clew::engine {
namespace {

struct ProcessText {
  std::vector<inline_::PatchedText> patched;
  std::vector<target::Mapping> maps;
};

ProcessText text_of(pid_t pid) {
  ProcessText text{.patched = inline_::patched_text(pid), .maps = {}};
  if (text.patched.empty()) return text;
  auto maps = target::read_memory_map(pid);
  if (maps) text.maps = std::move(*maps);
  return text;
}

bool is_patched(const ProcessText& text, const kernel::Probe& probe) {
  struct stat file = {};
  if (stat(probe.path.c_str(), &file) != 0) return false;
  return std::any_of(text.maps.begin(), text.maps.end(), [&](const target::Mapping& map) {
    const uint64_t distance = probe.offset_bytes - map.file_offset;
    const bool is_here = map.executable && map.inode == file.st_ino &&
                         probe.offset_bytes >= map.file_offset && distance < map.size_bytes();
    const uint64_t address = map.start + distance;
    return is_here && std::any_of(text.patched.begin(), text.patched.end(),
                                  [&](const inline_::PatchedText& one) {
                                    return address - one.address < one.size_bytes;
                                  });
  });
}

}  // namespace

Expected<void> check_uprobe_places(std::span<const kernel::DEnabling> enablings,
                                   const std::set<uint32_t>& elsewhere) {
  std::map<pid_t, ProcessText> processes;  // That have jumps of sessions.
  for (const inline_::ArenaInfo& arena : inline_::ps()) {
    ProcessText text = text_of(arena.pid);
    if (!text.patched.empty()) processes.emplace(arena.pid, std::move(text));
  }
  for (uint32_t i = 0; i < enablings.size() && !processes.empty(); ++i) {
    const kernel::Probe& probe = enablings[i].probe;
    if (!kernel::needs_uprobe(probe.kind) || elsewhere.contains(i)) continue;
    for (const auto& [pid, text] : processes) {
      const bool is_of_one = probe.pid != 0 && !probe.is_everywhere;
      if ((is_of_one && probe.pid != pid) || !is_patched(text, probe)) continue;
      return fail(ErrorCode::Refused,
                  fmt::format("{}:{}:{}:{}: a uprobe would end process {}, since a session has a "
                              "probe of its own there (clew ps)",
                              probe.provider, probe.module, probe.function, probe.name, pid));
    }
  }
  return {};
}

}  // namespace clew::engine
