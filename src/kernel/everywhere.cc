// SPDX-License-Identifier: Apache-2.0
#include "kernel/everywhere.h"

#include <algorithm>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace clew::kernel {

std::string provider_without_pid(const Probe& probe) {
  const std::string digits = std::to_string(probe.pid);
  if (!probe.provider.ends_with(digits)) return probe.provider;
  return probe.provider.substr(0, probe.provider.size() - digits.size());
}

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

std::vector<DEnabling> EverywherePlaces::merge(std::vector<DEnabling> enablings) {
  std::vector<DEnabling> merged;
  std::map<Place, size_t> added;
  for (DEnabling& one : enablings) {
    Place place;
    if (one.probe.is_everywhere && !resolve(one.probe, place)) continue;
    if (one.probe.is_everywhere) {
      if (known_.count(place) != 0) continue;
      const auto [found, is_new] = added.try_emplace(place, merged.size());
      if (!is_new) {
        std::vector<uint32_t>& clauses = merged[found->second].clauses;
        std::vector<uint32_t> all;
        std::set_union(clauses.begin(), clauses.end(), one.clauses.begin(), one.clauses.end(),
                       std::back_inserter(all));
        clauses = std::move(all);
        continue;
      }
    }
    merged.push_back(std::move(one));
  }
  for (const auto& [place, index] : added)
    known_.insert(place);
  return merged;
}

}  // namespace clew::kernel
