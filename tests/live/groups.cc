// SPDX-License-Identifier: Apache-2.0
#include "live/groups.h"

#include <fstream>
#include <sstream>
#include <system_error>

#include <unistd.h>

namespace clew::live {

namespace fs = std::filesystem;

// Where control groups of version 2 are, or those of systemd.
Groups::Groups() {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  while (std::getline(mounts, line) && !are_numbered_) {
    std::istringstream words(line);
    std::string device;
    std::string path;
    std::string type;
    std::string options;
    words >> device >> path >> type >> options;
    are_numbered_ = type == "cgroup2";
    const bool is_of_systemd =
        type == "cgroup" && options.find("name=systemd") != std::string::npos;
    if (are_numbered_ || is_of_systemd) mounted_ = path;
  }
  root_ = mounted_ / ("clew-test-" + std::to_string(getpid()));
}

Groups::~Groups() {
  for (auto group = made_.rbegin(); group != made_.rend(); ++group)
    rmdir(group->c_str());
}

bool Groups::put(pid_t pid, const std::string& path) {
  fs::path group = root_;
  std::error_code error;
  if (mounted_.empty()) return false;
  if (fs::create_directory(group, error)) made_.push_back(group);
  for (const fs::path& part : fs::path(path)) {
    group /= part;
    if (fs::create_directory(group, error)) made_.push_back(group);
  }
  std::ofstream procs(group / "cgroup.procs");
  procs << pid << std::flush;
  return procs.good();
}

std::string Groups::path_of(const std::string& path) const {
  return (root_ / path).string().substr(mounted_.string().size());
}

}  // namespace clew::live
