// SPDX-License-Identifier: Apache-2.0
#include "target/odd_mappings.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/proc_file.h"

namespace clew::target {
namespace {

using Device = std::pair<uint32_t, uint32_t>;

bool is_zero_device(const struct statx& info) {
  constexpr unsigned kMemoryMajor = 1;  // Documentation/admin-guide/devices.txt
  constexpr unsigned kZero = 5;
  return info.stx_rdev_major == kMemoryMajor && info.stx_rdev_minor == kZero;
}

// Files of these wait for a process, or are no files.
bool is_odd_file_system(std::string_view type) {
  constexpr std::array<std::string_view, 4> kOdd = {"proc", "sysfs", "debugfs", "resctrl"};
  return type == "fuse" || type.starts_with("fuse.") || type == "fuseblk" ||
         std::find(kOdd.begin(), kOdd.end(), type) != kOdd.end();
}

// By device, as the process sees them; nothing where they cannot be read. A line: ID PARENT
// MAJOR:MINOR ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS (proc(5)).
std::optional<std::map<Device, std::string>> odd_file_systems(pid_t pid) {
  std::map<Device, std::string> found;
  const auto text = read_proc_file(pid, "mountinfo");
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream front(line.substr(0, dash));
    std::istringstream back(line.substr(dash + 3));
    std::string skipped;
    std::string type;
    Device device;
    char colon = 0;
    front >> skipped >> skipped >> device.first >> colon >> device.second;
    back >> type;
    if (is_odd_file_system(type)) found[device] = type;
  }
  return found;
}

// What maps calls by a name and is no file: memory that the kernel shares with the process.
bool is_plain_pseudo_file(std::string_view path) {
  constexpr std::array<std::string_view, 7> kPlain = {"/memfd:",
                                                      "/SYSV",
                                                      "/dev/zero",
                                                      "/anon_hugepage",
                                                      "anon_inode:bpf-map",
                                                      "anon_inode:[perf_event]",
                                                      "anon_inode:[io_uring]"};
  return std::any_of(kPlain.begin(), kPlain.end(),
                     [path](std::string_view one) { return path.starts_with(one); });
}

// A character device, other than /dev/zero; also what cannot be looked at and is shared. Asks no
// server of files.
bool is_device(pid_t pid, const Mapping& map) {
  constexpr int kFlags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
  const std::string range = proc_path(pid, fmt::format("map_files/{:x}-{:x}", map.start, map.end));
  const std::string path = proc_path(pid, "root") + map.path;
  struct statx info = {};
  const auto knows = [&](const std::string& name) {
    return statx(AT_FDCWD, name.c_str(), kFlags, STATX_TYPE, &info) == 0;
  };
  const bool is_known = knows(range) || (map.shared && knows(path));
  if (!is_known) return map.shared;
  return S_ISCHR(info.stx_mode) && !is_zero_device(info);
}

std::optional<std::string> odd_file(pid_t pid, const Mapping& map,
                                    const std::map<Device, std::string>& odd) {
  const auto type = odd.find({map.device_major, map.device_minor});
  if (type != odd.end()) {
    return fmt::format("it maps {}, of a file system of type {}", map.path, type->second);
  }
  if (map.path.starts_with("anon_inode:") || map.path.starts_with("/dmabuf"))
    return fmt::format("it maps {}", map.path);
  if (is_device(pid, map)) return fmt::format("it maps the device {}", map.path);
  return std::nullopt;
}

// Also where its descriptors cannot be seen.
bool may_serve_faults(pid_t pid) {
  const std::string folder = proc_path(pid, "fd");
  DIR* const names = opendir(folder.c_str());
  if (names == nullptr) return true;
  bool found = false;
  while (const dirent* const name = readdir(names)) {  // NOLINT(concurrency-mt-unsafe)
    std::array<char, 64> link{};
    const ssize_t size =
        readlinkat(dirfd(names), static_cast<const char*>(name->d_name), link.data(), link.size());
    found = size > 0 &&
            std::string_view(link.data(), static_cast<size_t>(size)) == "anon_inode:[userfaultfd]";
    if (found) break;
  }
  (void)closedir(names);
  return found;
}

// Whether so many bytes are the first stack's. Parts of it may have other rights, and then no name.
bool is_first_stack(std::span<const Mapping> maps, uint64_t size_bytes) {
  const auto named = std::find_if(maps.begin(), maps.end(),
                                  [](const Mapping& map) { return map.path == "[stack]"; });
  if (named == maps.end()) return size_bytes == 0;
  auto first = named;
  while (first != maps.begin() && (first - 1)->end == first->start && (first - 1)->path.empty())
    --first;
  auto last = named;
  while (last + 1 != maps.end() && (last + 1)->start == last->end && (last + 1)->path.empty())
    ++last;
  return size_bytes == named->size_bytes() || size_bytes == last->end - first->start;
}

// The first stack may grow between a look at the mappings and one at the sizes: looks again then.
bool has_other_stacks(pid_t pid, std::span<const Mapping> maps) {
  constexpr unsigned kLooksMax = 8;
  auto size = read_growing_bytes(pid);
  if (size && is_first_stack(maps, *size)) return false;
  for (unsigned look = 0; look < kLooksMax && size; ++look) {
    const auto now = read_memory_map(pid);
    const auto before = std::exchange(size, read_growing_bytes(pid));
    if (!now || !size) return true;
    if (is_first_stack(*now, *size)) return false;
    if (*before == *size) return true;
  }
  return true;
}

}  // namespace

std::optional<std::string> find_odd_mapping(pid_t pid, std::span<const Mapping> maps) {
  const pid_t holder = memory_holder(pid);  // Where the first thread has ended, it shows nothing.
  const auto odd = odd_file_systems(holder);
  if (!odd) return "its file systems cannot be seen";
  std::set<std::tuple<uint32_t, uint32_t, uint64_t>> seen;
  for (const Mapping& map : maps) {
    if (map.path.empty() || map.path.front() == '[' || is_plain_pseudo_file(map.path)) continue;
    if (!seen.emplace(map.device_major, map.device_minor, map.inode).second) continue;
    if (auto reason = odd_file(holder, map, *odd)) return reason;
  }
  if (has_other_stacks(pid, maps)) return "it maps memory that grows down (MAP_GROWSDOWN)";
  if (may_serve_faults(holder)) return "it may serve faults of its memory itself (userfaultfd)";
  return std::nullopt;
}

}  // namespace clew::target
