// SPDX-License-Identifier: Apache-2.0
#include "kernel/tracefs.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::kernel {

namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kFileBytesMax = size_t{64} << 20;

FileDescriptor open_mounted() {
  for (const char* path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    FileDescriptor root(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (root.valid() && faccessat(root.get(), "available_events", F_OK, 0) == 0) return root;
  }
  return {};
}

// A mount that is in no namespace: only the descriptor leads to it (Linux 5.2).
Expected<FileDescriptor> mount_detached() {
  const auto refused = [](const char* call) {
    return fail(ErrorCode::Refused, fmt::format("tracefs is not mounted and cannot be: {}: {}",
                                                call, error_text(errno)));
  };
  const FileDescriptor context(fsopen("tracefs", FSOPEN_CLOEXEC));
  if (!context.valid()) return refused("fsopen");
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return refused("fsconfig");
  }
  FileDescriptor root(fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
  if (!root.valid()) return refused("fsmount");
  return root;
}

}  // namespace

Expected<Tracefs> Tracefs::open() {
  Tracefs result;
  result.root_ = open_mounted();
  if (!result.root_.valid()) result.root_ = CLEW_TRY(mount_detached());
  return result;
}

bool Tracefs::exists(const std::string& path) const {
  return faccessat(root_.get(), path.c_str(), F_OK, 0) == 0;
}

Expected<std::string> Tracefs::read(const std::string& path) const {
  const FileDescriptor file(openat(root_.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto failed = [&path](int error) {
    // Whose right it is not gets EACCES (tracefs_open(), LOCKDOWN_TRACEFS; since Linux 5.4).
    const std::string reason =
        error == EPERM ? "the kernel is locked down; boot without lockdown=confidentiality"
                       : error_text(error);
    return fail(error == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
                fmt::format("cannot read {} of tracefs: {}", path, reason));
  };
  if (!file.valid()) return failed(errno);
  std::string text;
  while (text.size() < kFileBytesMax) {
    const size_t size_bytes = text.size();
    text.resize(size_bytes + kReadBytes);
    const ssize_t got = ::read(file.get(), text.data() + size_bytes, kReadBytes);
    if (got < 0) return failed(errno);
    text.resize(size_bytes + static_cast<size_t>(got));
    if (got == 0) return text;
  }
  return fail(ErrorCode::Limit, fmt::format("{} of tracefs is too large", path));
}

}  // namespace clew::kernel
