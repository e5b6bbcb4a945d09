// SPDX-License-Identifier: Apache-2.0
#include "target/proc_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"

namespace clew::target {

namespace {

constexpr size_t kProcFileMaxBytes = size_t{256} << 20;

}  // namespace

std::string proc_path(pid_t pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

Error proc_error(pid_t pid, std::string_view what, int system_error) {
  if (system_error == ENOENT || system_error == ESRCH) {
    return {ErrorCode::NotFound, fmt::format("no process has the pid {}", pid)};
  }
  if (system_error == EACCES || system_error == EPERM) {
    const std::string_view why =
        geteuid() == 0 ? "not even for root here: a container or a security policy forbids it "
                         "(CAP_SYS_PTRACE)"
                       : "it belongs to another user or is protected, try as root";
    return {ErrorCode::Io,
            fmt::format("no permission to read {} of process {}; {}", what, pid, why)};
  }
  return {ErrorCode::Io,
          fmt::format("cannot read {} of process {}: {}", what, pid, error_text(system_error))};
}

Expected<std::string> read_proc_file(pid_t pid, std::string_view name) {
  const FileDescriptor file(open(proc_path(pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return tl::unexpected(proc_error(pid, name, errno));
  std::string text;
  size_t used = 0;
  for (;;) {
    if (used == text.size()) text.resize(std::max<size_t>(4096, 2 * text.size()));
    const ssize_t count = read(file.get(), text.data() + used, text.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return tl::unexpected(proc_error(pid, name, errno));
    used += static_cast<size_t>(count);
    if (count == 0) break;
    if (used > kProcFileMaxBytes) {
      return fail(ErrorCode::Limit, fmt::format("{} is too long", proc_path(pid, name)));
    }
  }
  text.resize(used);
  return text;
}

Expected<std::string> read_proc_link(pid_t pid, std::string_view name) {
  std::array<char, PATH_MAX + 16> target{};  // The kernel may append " (deleted)".
  const ssize_t size = readlink(proc_path(pid, name).c_str(), target.data(), target.size());
  if (size < 0) return tl::unexpected(proc_error(pid, name, errno));
  return std::string(target.data(), static_cast<size_t>(size));
}

Expected<std::vector<pid_t>> read_number_names(const std::string& directory) {
  std::error_code error;
  std::vector<pid_t> numbers;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) {
      numbers.push_back(number);
    }
  }
  if (error) {
    const bool gone =
        error == std::errc::no_such_file_or_directory || error == std::errc::no_such_process;
    return fail(gone ? ErrorCode::NotFound : ErrorCode::Io,
                fmt::format("cannot list {}: {}", directory, error.message()));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace clew::target
