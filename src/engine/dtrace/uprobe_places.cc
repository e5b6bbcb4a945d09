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

bool is_in_process(const kernel::Probe& probe) {
  using kernel::AttachKind;
  return probe.kind == AttachKind::UserEntry || probe.kind == AttachKind::UserReturn ||
         probe.kind == AttachKind::UserOffset || probe.kind == AttachKind::Usdt;
}

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
  std::map<int64_t, ProcessText> processes;
  for (uint32_t i = 0; i < enablings.size(); ++i) {
    const kernel::Probe& probe = enablings[i].probe;
    if (!is_in_process(probe) || probe.pid == 0 || elsewhere.contains(i)) continue;
    const auto [text, is_new] = processes.try_emplace(probe.pid);
    if (is_new) text->second = text_of(static_cast<pid_t>(probe.pid));
    if (text->second.patched.empty() || !is_patched(text->second, probe)) continue;
    return fail(ErrorCode::Refused,
                fmt::format("{}:{}:{}:{}: a uprobe would end process {}, since a session has a "
                            "probe of its own there (clew ps)",
                            probe.provider, probe.module, probe.function, probe.name, probe.pid));
  }
  return {};
}

}  // namespace clew::engine
