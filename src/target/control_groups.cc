// SPDX-License-Identifier: Apache-2.0
#include "target/control_groups.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace clew::target {
namespace {

constexpr size_t kGroupsMax = 65536;
constexpr uint64_t kRootNumber = 1;

// Nothing when it has no inode any more.
std::optional<uint64_t> inode_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_ino;
}

std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::error_code gone;
    if (!at->is_symlink(gone) && at->is_directory(gone)) folders.push_back(at->path());
  }
  return folders;
}

}  // namespace

ControlGroups::ControlGroups() {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string device;
    std::string path;
    std::string type;
    words >> device >> path >> type;
    if (type == "cgroup2" && mounted_.empty()) mounted_ = path;
    // Then a process may be in a container of version 1, and in the root of version 2.
    if (type == "cgroup") has_version_1_ = true;
  }
}

void ControlGroups::keep() {
  if (mounted_.empty()) return;
  std::vector<std::filesystem::path> open = {mounted_};
  while (!open.empty() && paths_.size() < kGroupsMax) {
    const std::filesystem::path folder = std::move(open.back());
    open.pop_back();
    const std::optional<uint64_t> number = inode_of(folder);
    if (!number) continue;
    const std::string within = folder.string().substr(mounted_.size());
    paths_[*number] = within.empty() ? "/" : within;
    for (std::filesystem::path& each : folders_in(folder))
      open.push_back(std::move(each));
  }
}

std::optional<std::string> ControlGroups::path_of(uint64_t number) {
  if (number == kRootNumber && has_version_1_) return std::nullopt;
  const auto known = paths_.find(number);
  if (known != paths_.end()) return known->second;
  std::optional<std::string> path = ask(number);
  if (path && paths_.size() < kGroupsMax) paths_[number] = *path;
  return path;
}

uint64_t ControlGroups::number_of(std::string_view path) const {
  if (mounted_.empty()) return 0;
  return inode_of(fmt::format("{}{}", mounted_, path)).value_or(0);
}

// open_by_handle_at(2): a handle of the kernel's file systems of this kind is the number alone.
std::optional<std::string> ControlGroups::ask(uint64_t number) {
  constexpr int kKernfsHandle = 0xfe;  // FILEID_KERNFS
  if (mounted_.empty()) return std::nullopt;
  if (!folder_.valid())
    folder_ = FileDescriptor(open(mounted_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  alignas(file_handle) std::array<unsigned char, sizeof(file_handle) + sizeof number> room{};
  auto* const handle = reinterpret_cast<file_handle*>(room.data());
  handle->handle_bytes = sizeof number;
  handle->handle_type = kKernfsHandle;
  std::memcpy(room.data() + sizeof(file_handle), &number, sizeof number);
  const FileDescriptor group(open_by_handle_at(folder_.get(), handle, O_PATH | O_CLOEXEC));
  if (!group.valid()) return std::nullopt;
  std::error_code error;
  const std::string path =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", group.get()), error).string();
  if (error || !path.starts_with(mounted_)) return std::nullopt;
  // One that was removed in between; a group's own name has no blank from anybody but a person.
  if (path.ends_with(" (deleted)")) return std::nullopt;
  return path.size() == mounted_.size() ? "/" : path.substr(mounted_.size());
}

}  // namespace clew::target
