// SPDX-License-Identifier: Apache-2.0
// Whose uprobes there are: processes that hold descriptors of such probes, and the names of those
// that were made through tracefs. Root is told; nobody else is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace clew::kernel {

struct OwnedUprobe {
  std::string path;  // Of the file.
  uint64_t file_offset = 0;
  std::string owner;  // "bpftrace 4711", "uprobe_events probe_sh/main"
  bool operator==(const OwnedUprobe&) const = default;
};

// Those that can be known: a perf event that has no program does not say where it is.
std::vector<OwnedUprobe> owned_uprobes();

}  // namespace clew::kernel
