// SPDX-License-Identifier: Apache-2.0
#include "live/uprobe.h"

#include <fstream>
#include <sstream>
#include <string>

#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace clew::live {
namespace {

struct FilePlace {
  std::string path;
  uint64_t offset = 0;
};

FilePlace place_of(pid_t pid, uint64_t address) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t offset = 0;
    char dash = 0;
    std::string permissions;
    std::string device;
    std::string inode;
    FilePlace place;
    words >> std::hex >> start >> dash >> end >> permissions >> offset >> device >> inode >>
        place.path;
    if (address < start || address >= end) continue;
    place.offset = address - start + offset;
    return place;
  }
  return {};
}

}  // namespace

FileDescriptor open_event(perf_event_attr& attributes, const Watched& what) {
  attributes.size = sizeof attributes;
  constexpr int kNoGroup = -1;
  return FileDescriptor(static_cast<int>(syscall(SYS_perf_event_open, &attributes, what.pid,
                                                 what.processor, kNoGroup, PERF_FLAG_FD_CLOEXEC)));
}

Uprobe::Uprobe(pid_t pid, uint64_t address, Kind kind, Where where) {
  std::ifstream file("/sys/bus/event_source/devices/uprobe/type");
  uint32_t type = 0;
  if (!(file >> type)) return;
  const FilePlace place = place_of(pid, address);
  perf_event_attr attributes{};
  attributes.type = type;
  attributes.config = kind == Kind::Return ? 1 : 0;
  attributes.config1 = reinterpret_cast<uint64_t>(place.path.c_str());
  attributes.config2 = place.offset;
  const bool is_one = where == Where::ThisProcess;
  for (int processor = 0; processor < (is_one ? 1 : get_nprocs_conf()); ++processor) {
    FileDescriptor event = is_one ? open_event(attributes, {.pid = pid})
                                  : open_event(attributes, {.processor = processor});
    if (event.valid()) events_.push_back(std::move(event));
  }
}

uint64_t Uprobe::hits() const {
  uint64_t sum = 0;
  for (const FileDescriptor& event : events_) {
    uint64_t count = 0;
    if (read(event.get(), &count, sizeof count) == sizeof count) sum += count;
  }
  return sum;
}

}  // namespace clew::live
