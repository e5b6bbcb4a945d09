// SPDX-License-Identifier: Apache-2.0
#include "kernel/everywhere.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace clew::kernel {
namespace {

// Both are ascending.
void join_clauses(std::vector<uint32_t>& clauses, const std::vector<uint32_t>& more) {
  std::vector<uint32_t> all;
  std::set_union(clauses.begin(), clauses.end(), more.begin(), more.end(), std::back_inserter(all));
  clauses = std::move(all);
}

// The name that all processes' probes of this provider begin with: "python" of "python123".
std::string provider_without_pid(const Probe& probe) {
  const std::string digits = std::to_string(probe.pid);
  if (!probe.provider.ends_with(digits)) return probe.provider;
  return probe.provider.substr(0, probe.provider.size() - digits.size());
}

}  // namespace

// False when the file is gone, with its process.
bool EverywherePlaces::resolve(Probe& probe, Place& place) {
  struct stat status {};
  if (stat(probe.path.c_str(), &status) != 0) return false;
  FileDescriptor& file = files_[{status.st_dev, status.st_ino}];
  if (!file.valid()) file = FileDescriptor(open(probe.path.c_str(), O_PATH | O_CLOEXEC));
  if (!file.valid()) return false;
  place = {.device = status.st_dev,
           .inode = status.st_ino,
           .offset_bytes = probe.offset_bytes,
           .provider = provider_without_pid(probe),
           .name = probe.name};
  probe.provider = place.provider;
  probe.path = fmt::format("/proc/self/fd/{}", file.get());
  probe.pid = 0;
  return true;
}

void EverywherePlaces::merge(std::span<MachineEnabling> enablings) {
  std::map<Place, MachineEnabling*> added;
  for (MachineEnabling& one : enablings) {
    if (!one.probe.is_everywhere) continue;
    Place place;
    const bool is_there = resolve(one.probe, place) && known_.count(place) == 0;
    const auto [found, is_new] =
        is_there ? added.try_emplace(place, &one) : std::pair(added.end(), false);
    if (is_new) continue;
    if (is_there) join_clauses(found->second->clauses, one.clauses);
    one.clauses.clear();
  }
  for (const auto& [place, enabling] : added)
    known_.insert(place);
}

}  // namespace clew::kernel
