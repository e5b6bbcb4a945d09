// SPDX-License-Identifier: Apache-2.0
#include "recorder/snap_limits.h"

#include <algorithm>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/show.h"

namespace clew::recorder {

namespace {

constexpr size_t kFilesMax = 200'000;  // That are looked at.

struct FolderCloser {
  void operator()(DIR* folder) const { (void)closedir(folder); }
};

const std::string& identity_of(const SnapModule& module) {
  return module.build_id.empty() ? module.path : module.build_id;
}

const SnapModule* copy_with(const Snap& snap, uint64_t pc) {
  for (const SnapModule& module : snap.modules) {
    if (module.id_count != 0 && pc - module.copy_address < module.code_size) return &module;
  }
  return nullptr;
}

// The module that begins last in front of it: where modules end is not in a snap.
const SnapModule* original_with(const Snap& snap, uint64_t pc) {
  const SnapModule* found = nullptr;
  for (const SnapModule& module : snap.modules) {
    if (module.load_bias > pc) continue;
    if (found == nullptr || module.load_bias > found->load_bias) found = &module;
  }
  return found;
}

uint64_t ns_of(const timespec& time) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  return static_cast<uint64_t>(time.tv_sec) * kSecondNs + static_cast<uint64_t>(time.tv_nsec);
}

// Clocks may have been set meanwhile.
bool is_within(uint64_t one_ns, uint64_t other_ns, uint64_t interval_ns) {
  return std::max(one_ns, other_ns) - std::min(one_ns, other_ns) < interval_ns;
}

SuppressedBy same_as(const Snap& snap) {
  if (!snap.condition.empty()) return SuppressedBy::SameQuery;
  switch (snap.reason.trigger) {
    case SnapTrigger::Event:
      break;
    case SnapTrigger::Exit:
      return SuppressedBy::SameExit;
    case SnapTrigger::Heartbeat:
      return SuppressedBy::SameHeartbeat;
  }
  return SuppressedBy::SameCrash;
}

}  // namespace

bool runs_on(const Snap& snap) {
  return !snap.condition.empty() || snap.reason.trigger == SnapTrigger::Heartbeat;
}

std::optional<CrashPlace> crash_place(const Snap& snap) {
  const SnapTrigger trigger = snap.reason.trigger;
  if (runs_on(snap)) {
    const std::string_view program = snap.command.empty() ? "" : file_of(snap.command.front());
    return CrashPlace{0, fmt::format("{}: {}", program, snap.condition), 0, trigger};
  }
  const auto thread = std::find_if(snap.threads.begin(), snap.threads.end(),
                                   [&snap](const SnapThread& one) { return is_reason(snap, one); });
  if (thread == snap.threads.end()) return std::nullopt;
  uint64_t pc = thread->registers.rip;
  const SnapModule* module = copy_with(snap, pc);
  const SnapModule* const original = module == nullptr ? original_with(snap, pc) : nullptr;
  const bool is_recorded = original != nullptr && original->id_count != 0;
  if (module == nullptr && !is_recorded && thread->called_from != 0) {
    module = copy_with(snap, thread->called_from);
    if (module != nullptr) pc = thread->called_from;
  }
  const int32_t what = trigger == SnapTrigger::Exit ? snap.reason.code : snap.reason.signal;
  if (module != nullptr)
    return CrashPlace{what, identity_of(*module), pc - module->copy_address, trigger};
  if (original == nullptr) return CrashPlace{what, {}, pc, trigger};
  return CrashPlace{what, identity_of(*original), pc - original->load_bias, trigger};
}

std::string_view name_of(SuppressedBy cause) {
  switch (cause) {
    case SuppressedBy::SameCrash:
      return "same crash";
    case SuppressedBy::SameQuery:
      return "same query";
    case SuppressedBy::SameExit:
      return "same exit";
    case SuppressedBy::SameHeartbeat:
      return "the heartbeat is lost again";
    case SuppressedBy::Files:
      return "files_max is reached";
    case SuppressedBy::Bytes:
      return "bytes_max is reached";
  }
  return {};
}

// Only the files of our own and of root count: others' say nothing that is to be believed.
void SnapFolder::look() {
  std::map<std::string, File> before;
  before.swap(files_);
  const std::unique_ptr<DIR, FolderCloser> folder(opendir(path_.c_str()));
  if (folder == nullptr) return;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own.
  while (const dirent* const entry = readdir(folder.get())) {
    const std::string name(static_cast<const char*>(entry->d_name));
    struct stat status {};
    const bool is_snap =
        name.ends_with(".snap") &&
        fstatat(dirfd(folder.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && (status.st_uid == geteuid() || status.st_uid == 0);
    if (!is_snap || files_.size() == kFilesMax) continue;
    File file{.inode = status.st_ino,
              .bytes = static_cast<uint64_t>(status.st_size),
              .written_ns = ns_of(status.st_mtim)};
    const auto known = before.find(name);
    const bool is_same = known != before.end() && known->second.inode == file.inode &&
                         known->second.bytes == file.bytes &&
                         known->second.written_ns == file.written_ns;
    files_.emplace(name, is_same ? known->second : std::move(file));
  }
}

void SnapFolder::read(const std::string& name, File& file) {
  if (file.is_read) return;
  file.is_read = true;
  const Expected<Snap> snap = read_snap(fmt::format("{}/{}", path_, name));
  if (!snap) return;
  file.place = crash_place(*snap);
  file.time_ns = snap->reason.time_ns;
}

std::optional<Suppression> SnapFolder::same_crash(const Snap& snap) {
  const auto place = crash_place(snap);
  if (!place) return std::nullopt;
  const uint64_t now_ns = snap.reason.time_ns;
  uint32_t count = 0;
  const std::pair<const std::string, File>* newest = nullptr;
  for (auto& entry : files_) {
    File& file = entry.second;
    if (!is_within(file.written_ns, now_ns, limits_.interval_ns)) continue;
    read(entry.first, file);
    if (file.place != place || !is_within(file.time_ns, now_ns, limits_.interval_ns)) continue;
    ++count;
    if (newest == nullptr || file.time_ns > newest->second.time_ns) newest = &entry;
  }
  if (newest == nullptr || count < limits_.same_crash_max.value_or(1)) return std::nullopt;
  return Suppression{same_as(snap), newest->first};
}

std::optional<Suppression> SnapFolder::suppression_of(const Snap& snap) {
  const bool looks_for_same = limits_.same_crash_max || runs_on(snap);
  if (!looks_for_same && !limits_.files_max && !limits_.bytes_max) return std::nullopt;
  look();
  if (looks_for_same) {
    if (auto same = same_crash(snap)) return same;
  }
  if (limits_.files_max && files_.size() >= *limits_.files_max)
    return Suppression{SuppressedBy::Files, {}};
  if (!limits_.bytes_max) return std::nullopt;
  uint64_t bytes = snap_bytes(snap).size();
  for (const auto& [name, file] : files_)
    bytes += file.bytes;
  if (bytes > *limits_.bytes_max) return Suppression{SuppressedBy::Bytes, {}};
  return std::nullopt;
}

}  // namespace clew::recorder
