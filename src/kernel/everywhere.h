// SPDX-License-Identifier: Apache-2.0
// Probes that stand for a place of a file in every process (Probe::is_everywhere). The catalogue
// names one for each process that has the place now; here they become one enabling for the place.
// Internal to machine_session.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "kernel/machine_session.h"

namespace clew::kernel {

class EverywherePlaces {
 public:
  // Takes the clauses from what stands for a place that was here before, and from what is gone. The
  // rest get pid 0 and a path that stays good when their process ends, while this object is there.
  // Other enablings are as they were.
  void merge(std::span<MachineEnabling> enablings);

 private:
  struct Place {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t offset_bytes = 0;
    std::string provider;  // Without the pid.
    std::string name;
    auto operator<=>(const Place&) const = default;
  };

  bool resolve(Probe& probe, Place& place);

  std::set<Place> known_;
  std::map<std::pair<uint64_t, uint64_t>, FileDescriptor> files_;  // By device and inode.
};

}  // namespace clew::kernel
