// SPDX-License-Identifier: Apache-2.0
// The control groups of version 2 by the number that the kernel has for each
// (bpf_get_current_cgroup_id()), which is the number of its folder's inode. Those that there are
// when they are kept stay known when they are gone; later ones are asked for by their number, as
// long as they are there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/file_descriptor.h"

namespace clew::target {

class ControlGroups {
 public:
  // Where version 2 is mounted, by /proc/self/mounts; without a place, everything is unknown.
  ControlGroups();
  explicit ControlGroups(std::string mounted) : mounted_(std::move(mounted)) {}

  // Reads the whole tree: one folder for each group, kGroupsMax at most.
  void keep();
  // "/system.slice/nginx.service" within the mount; nothing: it has gone, or may not be asked for.
  // Nor is there one for the root where version 1 is mounted, too: that may know better.
  std::optional<std::string> path_of(uint64_t number);
  // The other way, 0: there is none.
  [[nodiscard]] uint64_t number_of(std::string_view path) const;

 private:
  [[nodiscard]] std::optional<std::string> ask(uint64_t number);

  std::string mounted_;  // Empty: nowhere.
  bool has_version_1_ = false;
  FileDescriptor folder_;
  std::unordered_map<uint64_t, std::string> paths_;
};

}  // namespace clew::target
