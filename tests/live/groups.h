// SPDX-License-Identifier: Apache-2.0
// Control groups that a test makes, to put victims where runtimes of containers and systemd would
// have them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace clew::live {

class Groups {
 public:
  Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  // They go when nothing is in them any more: destroy it behind the processes.
  ~Groups();

  // Into the group at this path below the root. False where groups cannot be made: in a container,
  // or as an ordinary user.
  bool put(pid_t pid, const std::string& path);
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  // As /proc/PID/cgroup has it.
  [[nodiscard]] std::string path_of(const std::string& path) const;
  // Whether they are of version 2, whose numbers the kernel tells of events.
  [[nodiscard]] bool are_numbered() const { return are_numbered_; }

 private:
  bool are_numbered_ = false;
  std::filesystem::path mounted_;
  std::filesystem::path root_;
  std::vector<std::filesystem::path> made_;
};

}  // namespace clew::live
