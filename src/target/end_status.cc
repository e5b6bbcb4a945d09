// SPDX-License-Identifier: Apache-2.0
#include "target/end_status.h"

#include <cstdint>
#include <sstream>
#include <string>

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/proc_file.h"

namespace clew::target {
namespace {

// The first version of struct pidfd_info (linux/pidfd.h), which Debian 12's headers lack.
struct PidInfo {
  uint64_t mask;
  uint64_t control_group;
  uint32_t ids[11];
  int32_t exit_status;
};
static_assert(sizeof(PidInfo) == 64);
constexpr uint64_t kInfoExit = 8;                        // PIDFD_INFO_EXIT
constexpr uint64_t kGetInfo = _IOWR(0xff, 11, PidInfo);  // PIDFD_GET_INFO

std::optional<int> status_of_reaped(int pid_descriptor) {
  PidInfo info = {};
  info.mask = kInfoExit;
  if (ioctl(pid_descriptor, kGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) {
    return std::nullopt;
  }
  return info.exit_status;
}

// proc(5), /proc/PID/stat: the state is field 3, the status field 52; 0 to those who may not know.
std::optional<int> status_of_zombie(pid_t pid) {
  constexpr int kFieldsBetween = 48;
  const auto stat = read_proc_file(pid, "stat");
  // The name may have anything in it, newlines, too.
  const size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat->substr(name_end + 1));
  char state = 0;
  fields >> state;
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i)
    fields >> skipped;
  int status = 0;
  if (!(fields >> status) || state != 'Z' || status == 0) return std::nullopt;
  return status;
}

}  // namespace

std::optional<int> end_status(int pid_descriptor, pid_t pid) {
  const std::optional<int> status = status_of_zombie(pid);
  // While it can be named it is there, and its pid nobody else's.
  const bool is_there = syscall(SYS_pidfd_send_signal, pid_descriptor, 0, nullptr, 0) == 0;
  return status && is_there ? status : status_of_reaped(pid_descriptor);
}

}  // namespace clew::target
