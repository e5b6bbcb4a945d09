// SPDX-License-Identifier: Apache-2.0
#include "target/node_name.h"

#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include "base/assert.h"
#include "base/file_descriptor.h"

namespace clew::target {
namespace {

std::string own_name() {
  utsname system{};
  return uname(&system) == 0 ? system.nodename : "";
}

}  // namespace

std::string node_name_of(pid_t pid) {
  constexpr const char* kOwn = "/proc/thread-self/ns/uts";
  const std::string theirs = fmt::format("/proc/{}/ns/uts", pid);
  std::error_code error;
  std::string space = std::filesystem::read_symlink(theirs, error);
  if (error) return "";
  if (space == std::filesystem::read_symlink(kOwn, error).string()) return own_name();
  const FileDescriptor home(open(kOwn, O_RDONLY | O_CLOEXEC));
  const FileDescriptor there(open(theirs.c_str(), O_RDONLY | O_CLOEXEC));
  // No file says the name. Only this thread goes there, and back.
  if (home.get() < 0 || there.get() < 0 || setns(there.get(), CLONE_NEWUTS) != 0) return space;
  std::string name = own_name();
  CLEW_ASSERT(setns(home.get(), CLONE_NEWUTS) == 0);
  return name;
}

}  // namespace clew::target
