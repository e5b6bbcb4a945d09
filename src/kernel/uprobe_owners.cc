// SPDX-License-Identifier: Apache-2.0
#include "kernel/uprobe_owners.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace clew::kernel {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPathMax = 4096;
constexpr size_t kOffsetsMax = 4096;

template <typename Attributes>
int64_t bpf(int command, Attributes& attributes) {
  return syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// The number that the last part of a path is; 0 for anything else.
int number_of(const fs::path& path) {
  const std::string name = path.filename().string();
  int number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  return read.ptr == name.data() + name.size() ? number : 0;
}

// A perf event with a program, whoever holds it.
void add_event(int pid, int fd, const std::string& owner, std::vector<OwnedUprobe>& found) {
  std::array<char, kPathMax> path{};
  bpf_attr attributes{};
  attributes.task_fd_query.pid = static_cast<uint32_t>(pid);
  attributes.task_fd_query.fd = static_cast<uint32_t>(fd);
  attributes.task_fd_query.buf_len = path.size();
  attributes.task_fd_query.buf = address_of(path.data());
  if (bpf(BPF_TASK_FD_QUERY, attributes) != 0) return;
  const uint32_t type = attributes.task_fd_query.fd_type;
  if (type != BPF_FD_TYPE_UPROBE && type != BPF_FD_TYPE_URETPROBE) return;
  found.push_back({path.data(), attributes.task_fd_query.probe_offset, owner});
}

// bpf_link_info of a link to uprobes (Linux 6.8), and of one to a perf event (6.6).
struct LinkInfo {
  uint32_t type = 0;
  uint32_t id = 0;
  uint32_t program = 0;
  uint32_t padding = 0;
  union {
    struct {
      uint64_t path;
      uint64_t offsets;
      uint64_t counters;
      uint64_t cookies;
      uint32_t path_bytes;
      uint32_t count;
      uint32_t flags;
      uint32_t pid;
    } multi;
    struct {
      uint32_t kind;
      uint32_t padding;
      uint64_t path;
      uint32_t path_bytes;
      uint32_t offset;
    } event;
  } of = {.multi = {}};
};
constexpr uint32_t kPerfEventLink = 7;     // BPF_LINK_TYPE_PERF_EVENT
constexpr uint32_t kUprobeMultiLink = 12;  // BPF_LINK_TYPE_UPROBE_MULTI
constexpr uint32_t kUprobeEvent = 1;       // BPF_PERF_EVENT_UPROBE
constexpr uint32_t kUretprobeEvent = 2;

bool read_info(const FileDescriptor& link, LinkInfo& info) {
  bpf_attr attributes{};
  attributes.info.bpf_fd = static_cast<uint32_t>(link.get());
  attributes.info.info_len = sizeof info;
  attributes.info.info = address_of(&info);
  return bpf(BPF_OBJ_GET_INFO_BY_FD, attributes) == 0;
}

void add_link(uint32_t id, const std::string& owner, std::vector<OwnedUprobe>& found) {
  bpf_attr attributes{};
  attributes.link_id = id;
  const FileDescriptor link(static_cast<int>(bpf(BPF_LINK_GET_FD_BY_ID, attributes)));
  LinkInfo info;
  if (!link.valid() || !read_info(link, info)) return;
  std::array<char, kPathMax> path{};
  std::vector<uint64_t> offsets(kOffsetsMax);
  const uint32_t type = info.type;
  info = {};
  if (type == kUprobeMultiLink) {
    info.of.multi.path = address_of(path.data());
    info.of.multi.path_bytes = path.size();
    info.of.multi.offsets = address_of(offsets.data());
    info.of.multi.count = kOffsetsMax;
    if (!read_info(link, info)) return;
    for (size_t i = 0; i < std::min<size_t>(info.of.multi.count, kOffsetsMax); ++i)
      found.push_back({path.data(), offsets[i], owner});
  }
  if (type == kPerfEventLink) {
    info.of.event = {.kind = 0,
                     .padding = 0,
                     .path = address_of(path.data()),
                     .path_bytes = path.size(),
                     .offset = 0};
    if (!read_info(link, info)) return;
    const bool is_uprobe =
        info.of.event.kind == kUprobeEvent || info.of.event.kind == kUretprobeEvent;
    if (is_uprobe) found.push_back({path.data(), info.of.event.offset, owner});
  }
}

uint32_t link_id(const fs::path& process, int fd) {
  std::ifstream file(process / "fdinfo" / std::to_string(fd));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("link_id:"))
      return static_cast<uint32_t>(std::stoul(line.substr(line.find(':') + 1)));
  }
  return 0;
}

void add_process(const fs::path& process, int pid, std::vector<OwnedUprobe>& found) {
  std::string owner;
  std::error_code error;
  fs::directory_iterator entry(process / "fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry->path(), gone).string();
    const bool is_event = target == "anon_inode:[perf_event]";
    const bool is_link = target.find("bpf_link") != std::string::npos ||
                         target.find("bpf-link") != std::string::npos;
    if (gone || (!is_event && !is_link)) continue;
    if (owner.empty()) {
      std::getline(std::ifstream(process / "comm"), owner);
      owner = fmt::format("{} {}", owner, pid);
    }
    const int fd = number_of(entry->path());
    if (is_event) add_event(pid, fd, owner, found);
    if (is_link) add_link(link_id(process, fd), owner, found);
  }
}

// "p:probe_sh/main /usr/bin/sh:0x0000000000005af0 …"
void add_named(std::vector<OwnedUprobe>& found) {
  for (const char* path :
       {"/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"}) {
    std::ifstream file(path);
    if (!file) continue;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      std::string place;
      words >> name >> place;
      const size_t colon = place.rfind(":0x");
      if (colon == std::string::npos || name.find(':') == std::string::npos) continue;
      found.push_back({place.substr(0, colon), std::stoull(place.substr(colon + 1), nullptr, 16),
                       "uprobe_events " + name.substr(name.find(':') + 1)});
    }
    return;
  }
}

}  // namespace

std::vector<OwnedUprobe> owned_uprobes() {
  std::vector<OwnedUprobe> found;
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const int pid = number_of(entry->path());
    if (pid > 0 && pid != getpid()) add_process(entry->path(), pid, found);
  }
  add_named(found);
  return found;
}

}  // namespace clew::kernel
