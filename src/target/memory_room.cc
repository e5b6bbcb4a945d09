// SPDX-License-Identifier: Apache-2.0
#include "target/memory_room.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "target/proc_file.h"

namespace clew::target {
namespace {

// How a version calls what it tells.
struct Version {
  std::string_view limit;
  std::string_view usage;
  std::string_view inactive_file;  // In memory.stat.
  std::string_view active_file;
};
constexpr Version kFirst = {.limit = "memory.limit_in_bytes",
                            .usage = "memory.usage_in_bytes",
                            .inactive_file = "total_inactive_file",
                            .active_file = "total_active_file"};
constexpr Version kSecond = {.limit = "memory.max",
                             .usage = "memory.current",
                             .inactive_file = "inactive_file",
                             .active_file = "active_file"};
// PAGE_COUNTER_MAX: what version 1 has for no limit, in pages below INT64_MAX.
constexpr uint64_t kNoLimit = (uint64_t{1} << 63) - 4096;

struct Mount {
  bool is_second = false;
  std::string root;  // The group that is seen at the mount point.
  std::string point;
};

// Nothing for "max", and where there is no such file.
std::optional<uint64_t> number_in_file(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// The sum of the lines with these names: "NAME VALUE", in /proc/meminfo "NAME: VALUE kB".
uint64_t sum_in(const std::string& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    const bool is_one = words >> name >> value && std::count(names.begin(), names.end(), name) != 0;
    if (is_one) sum += value;
  }
  return sum;
}

bool has_word(std::string_view list, std::string_view word) {
  std::istringstream words{std::string(list)};
  for (std::string one; std::getline(words, one, ',');) {
    if (one == word) return true;
  }
  return false;
}

// Where groups that limit memory are seen. A line: ID PARENT DEVICE ROOT POINT OPTIONS … - TYPE
// SOURCE OPTIONS (proc(5)).
std::vector<Mount> group_mounts() {
  std::vector<Mount> mounts;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream front(line.substr(0, dash));
    std::istringstream back(line.substr(dash + 3));
    std::string skipped;
    Mount mount;
    std::string type;
    std::string options;
    front >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    back >> type >> skipped >> options;
    mount.is_second = type == "cgroup2";
    if (mount.is_second || (type == "cgroup" && has_word(options, "memory"))) {
      mounts.push_back(std::move(mount));
    }
  }
  return mounts;
}

// Its group in the hierarchy of that version: "0::/PATH", "N:CONTROLLERS:/PATH" (cgroups(7)).
std::optional<std::string> group_of(pid_t pid, bool is_second) {
  const auto text = read_proc_file(pid, "cgroup");
  std::istringstream lines(text ? *text : std::string());
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const bool is_it = is_second ? line.starts_with("0::") : has_word(controllers, "memory");
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

void take_less(MemoryRoom& least, const std::optional<MemoryRoom>& other) {
  if (other && other->left_bytes < least.left_bytes) least = *other;
}

// The group and all around it.
void look_up(const Mount& mount, std::string group, MemoryRoom& least) {
  if (group.starts_with("/..")) return;  // Beyond our namespace.
  if (mount.root != "/" && group.starts_with(mount.root)) group.erase(0, mount.root.size());
  while (!group.empty() && group != "/") {
    take_less(least, room_of_group(mount.point + group));
    group.erase(group.rfind('/'));
  }
  take_less(least, room_of_group(mount.point));
}

}  // namespace

std::optional<MemoryRoom> room_of_group(const std::string& directory) {
  for (const Version& version : {kSecond, kFirst}) {
    const std::string prefix = directory + "/";
    const auto limit = number_in_file(prefix + std::string(version.limit));
    const auto usage = number_in_file(prefix + std::string(version.usage));
    if (!limit || !usage || *limit >= kNoLimit) continue;
    const uint64_t files =
        sum_in(prefix + "memory.stat", {version.inactive_file, version.active_file});
    const uint64_t kept = *usage - std::min(*usage, files);
    return MemoryRoom{
        .left_bytes = *limit - std::min(*limit, kept), .limit_bytes = *limit, .group = directory};
  }
  return std::nullopt;
}

MemoryRoom memory_room(pid_t pid) {
  constexpr uint64_t kUnit = 1024;
  MemoryRoom least = {.left_bytes = kUnit * sum_in("/proc/meminfo", {"MemAvailable:"}),
                      .limit_bytes = kUnit * sum_in("/proc/meminfo", {"MemTotal:"}),
                      .group = {}};
  for (const Mount& mount : group_mounts()) {
    const auto group = group_of(pid, mount.is_second);
    if (group) look_up(mount, *group, least);
  }
  return least;
}

}  // namespace clew::target
