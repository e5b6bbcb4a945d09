// SPDX-License-Identifier: Apache-2.0
#include "engine/text_changes.h"

#include <algorithm>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "inline/attachment.h"
#include "kernel/uprobe_owners.h"
#include "target/proc_file.h"
#include "target/process.h"

namespace clew::engine {
namespace {

bool is_ours(std::span<const inline_::PatchedText> ours, uint64_t address) {
  return std::any_of(ours.begin(), ours.end(), [address](const inline_::PatchedText& text) {
    return address - text.address < text.size_bytes;
  });
}

// The first byte of each place.
void find_changes(pid_t pid, const target::Mapping& map, std::span<const inline_::PatchedText> ours,
                  std::vector<TextChange>& found) {
  constexpr size_t kPieceBytes = 1U << 20;
  constexpr size_t kFoundMax = 1000;
  constexpr uint64_t kPlaceBytes = 16;  // No instruction is longer.
  const FileDescriptor file(
      open((target::proc_path(pid, "root") + map.path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return;
  std::vector<uint8_t> text(kPieceBytes);
  std::vector<uint8_t> data(kPieceBytes);
  uint64_t last = 0;
  for (uint64_t at = map.start; at < map.end; at += kPieceBytes) {
    const uint64_t file_offset = map.file_offset + (at - map.start);
    const ssize_t size =
        pread(file.get(), data.data(), std::min<uint64_t>(kPieceBytes, map.end - at),
              static_cast<off_t>(file_offset));
    if (size <= 0) return;
    text.resize(static_cast<size_t>(size));
    if (!target::read_memory(pid, at, text)) return;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool is_known = text[i] == data[i] || is_ours(ours, at + i);
      const bool is_same_place = last != 0 && at + i - last < kPlaceBytes;
      if (is_known || is_same_place) continue;
      if (found.size() == kFoundMax) return;
      last = at + i;
      found.push_back({.address = last, .path = map.path, .file_offset = file_offset + i});
    }
  }
}

}  // namespace

std::string TextChange::place() const {
  return fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), file_offset);
}

std::vector<TextChange> text_changes(pid_t pid) {
  std::vector<TextChange> found;
  const auto maps = target::read_memory_map(pid);
  if (!maps) return found;
  const std::vector<inline_::PatchedText> ours = inline_::patched_text(pid);
  for (const target::Mapping& map : *maps) {
    const bool is_code = map.executable && !map.shared && map.inode != 0 && !map.is_deleted;
    if (is_code) find_changes(pid, map, ours, found);
  }
  return found;
}

std::vector<ForeignPatch> foreign_patches(pid_t pid) {
  std::vector<ForeignPatch> patches;
  const std::vector<TextChange> changes = text_changes(pid);
  if (changes.empty()) return patches;
  const std::vector<kernel::OwnedUprobe> owned = kernel::owned_uprobes();
  for (const TextChange& change : changes) {
    const auto owner =
        std::find_if(owned.begin(), owned.end(), [&](const kernel::OwnedUprobe& uprobe) {
          return uprobe.path == change.path && uprobe.file_offset == change.file_offset;
        });
    patches.push_back({.address = change.address,
                       .place = change.place(),
                       .owner = owner == owned.end() ? "" : owner->owner});
  }
  return patches;
}

}  // namespace clew::engine
