// SPDX-License-Identifier: Apache-2.0
#include "inline/process_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/log.h"
#include "inline/permission.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPauseOfLock{2};
constexpr std::chrono::milliseconds kTellAfter{1000};

bool is_of_proc(int file) {
  struct statfs system = {};
  return fstatfs(file, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// What a process is whatever mount of proc(5) shows it: its innermost pid name space, and its pid
// there.
struct Identity {
  std::string name_space;
  std::string pid;
  bool operator==(const Identity&) const = default;
};

// A file of a process's folder. The process may have mounted something else there, by name spaces
// of its own: a mount is never crossed (openat2(2), Linux 5.6), and nothing waits for a reader.
FileDescriptor open_in(int folder, const char* name) {
  const open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                        .mode = 0,
                        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
  return FileDescriptor(static_cast<int>(syscall(SYS_openat2, folder, name, &how, sizeof how)));
}

std::string read_all(const FileDescriptor& file) {
  constexpr size_t kMost = 16384;
  std::string text(kMost, '\0');
  const ssize_t count = file.valid() ? read(file.get(), text.data(), text.size()) : 0;
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

// Of a folder of a process in any mount of proc(5).
std::optional<Identity> identity_of(const FileDescriptor& folder) {
  if (!folder.valid() || !is_of_proc(folder.get())) return std::nullopt;
  std::array<char, 64> name_space{};
  const ssize_t length =
      readlinkat(folder.get(), "ns/pid", name_space.data(), name_space.size() - 1);
  if (length <= 0) return std::nullopt;
  std::istringstream status(read_all(open_in(folder.get(), "status")));
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kField = "NSpid:";
    if (!line.starts_with(kField)) continue;
    return Identity{.name_space = std::string(name_space.data(), static_cast<size_t>(length)),
                    .pid = line.substr(line.find_last_of("\t ") + 1)};
  }
  return std::nullopt;
}

FileDescriptor open_folder(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// By a mount that the process sees: everybody who may look into its root finds the same one.
FileDescriptor open_as_it_sees_itself(pid_t pid) {
  const auto facts = target::read_facts(pid);
  const auto wanted = identity_of(open_folder(fmt::format("/proc/{}", pid)));
  if (!facts || !wanted) return {};
  for (const pid_t number : facts->namespace_pids) {
    const FileDescriptor folder =
        open_folder(fmt::format("/proc/{}/root{}", pid, fmt::format("/proc/{}", number)));
    if (identity_of(folder) != wanted) continue;
    FileDescriptor file = open_in(folder.get(), "mem");
    if (file.valid() && is_of_proc(file.get())) return file;
  }
  return {};
}

// With too few descriptors left, another mount's file would be taken for the lock.
Expected<void> check_descriptors() {
  constexpr size_t kNeeded = 4;
  std::array<FileDescriptor, kNeeded> spare;
  for (FileDescriptor& one : spare) {
    one = FileDescriptor(open("/", O_PATH | O_CLOEXEC));
    if (!one.valid()) {
      return fail(ErrorCode::Io, fmt::format("the lock of a process: {}", error_text(errno)));
    }
  }
  return {};
}

Expected<FileDescriptor> open_lock(pid_t pid) {
  CLEW_TRY(check_descriptors());
  FileDescriptor file = open_as_it_sees_itself(pid);
  if (file.valid()) return file;
  const std::string path = fmt::format("/proc/{}/mem", pid);
  file = FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.valid()) return file;
  if (errno == ENOENT || errno == ESRCH) {
    return fail(ErrorCode::NotFound, fmt::format("no process {}", pid));
  }
  if (errno != EACCES && errno != EPERM) {
    return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  }
  return no_permission(fmt::format("process {}", pid));
}

// Who has locked a file, by the list of all locks; it leaves out holders in pid name spaces that we
// do not see. 0: nobody that is listed.
pid_t holder_by_list(const struct stat& info) {
  const std::string inode =
      fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string advice;
    std::string access;
    pid_t pid = 0;
    std::string held;
    words >> number >> kind >> advice >> access >> pid >> held;
    if (kind == "FLOCK" && held == inode && pid > 0) return pid;
  }
  return 0;
}

// "process 12 (clew)"
std::string holder_of(int file) {
  struct stat info = {};
  const pid_t pid = fstat(file, &info) == 0 ? holder_by_list(info) : 0;
  if (pid == 0) return "another session";
  const auto process = target::read_process(pid);
  return fmt::format("process {} ({})", pid, process ? process->comm : "gone");
}

// A session that came when the process had its first thread has the lock by that one's file, which
// cannot be opened any more.
bool is_locked_by_first_thread(pid_t pid) {
  struct stat info = {};
  const std::string path = fmt::format("/proc/{}/mem", pid);
  return stat(path.c_str(), &info) == 0 && holder_by_list(info) != 0;
}

// Whose files are the lock: the first thread's, or those of the others, the oldest of them.
std::vector<pid_t> holders_of(pid_t pid) {
  constexpr size_t kHoldersMax = 64;
  const pid_t holder = target::memory_holder(pid);
  if (holder == pid) return {pid};
  std::vector<pid_t> living = target::list_threads(pid).value_or(std::vector<pid_t>{});
  std::erase_if(living, [](pid_t tid) { return target::memory_holder(tid) != tid; });
  std::sort(living.begin(), living.end());
  if (living.size() > kHoldersMax) living.resize(kHoldersMax);
  return living.empty() ? std::vector{pid} : living;
}

bool is_readable(int descriptor) {
  pollfd stop = {.fd = descriptor, .events = POLLIN, .revents = 0};
  return descriptor >= 0 && poll(&stop, 1, 0) > 0;
}

}  // namespace

Expected<ProcessLock::Hold> ProcessLock::hold() {
  return take({.timeout = wait_.timeout, .stop_descriptor = wait_.stop_descriptor});
}

Expected<ProcessLock::Hold> ProcessLock::hold_to_leave() {
  const Clock::time_point begin = Clock::now();
  LeaveTime& time = *wait_.leave_time;
  Expected<Hold> hold =
      take({.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(time.left())});
  time.take(Clock::now() - begin);
  return hold;
}

Expected<std::optional<ProcessLock::Hold>> ProcessLock::try_hold() {
  constexpr std::chrono::milliseconds kBrief{5};
  return try_for({.timeout = kBrief});
}

Expected<ProcessLock::Hold> ProcessLock::take(const LockWait& wait) {
  const Clock::time_point begin = Clock::now();
  std::optional<Hold> hold = CLEW_TRY(try_for(wait));
  if (hold) return std::move(*hold);
  const FileDescriptor file = CLEW_TRY(open_lock(target::memory_holder(pid_)));
  const auto waited = std::chrono::ceil<std::chrono::seconds>(Clock::now() - begin);
  return fail(ErrorCode::Io, fmt::format("{} has been changing process {} for {} seconds",
                                         holder_of(file.get()), pid_, waited.count()));
}

Expected<std::optional<ProcessLock::Hold>> ProcessLock::try_for(const LockWait& wait) {
  if (holds_ == 0) {
    const StepTime time;
    const Expected<bool> done = wait_for_it(wait);
    if (done && *done) log_step(pid_, "is locked against other sessions ({:.1f} ms)", time.ms());
    if (!done || !*done) {
      log_step(pid_, "is locked by another session ({:.1f} ms)", time.ms());
      files_.clear();
      if (!done) return tl::unexpected(done.error());
      return std::optional<Hold>();
    }
  }
  ++holds_;
  return std::optional<Hold>(Hold(*this));
}

// The first thread may have ended, or end now; the others have the memory. Each of them may end
// while we hold its file's lock: it is had by who has all of them, and keeps others out while one
// of them lives. False when somebody else has one.
Expected<bool> ProcessLock::try_lock() {
  const std::vector<pid_t> holders = holders_of(pid_);
  std::vector<FileDescriptor> files;
  for (const pid_t holder : holders) {
    auto file = open_lock(holder);
    if (!file && holders_of(pid_) != holders) return false;  // It has just ended.
    files.push_back(CLEW_TRY(std::move(file)));
    if (flock(files.back().get(), LOCK_EX | LOCK_NB) == 0) continue;
    const int error = errno;
    if (error == EWOULDBLOCK || error == EINTR) {
      in_the_way_ = std::move(files.back());
      return false;
    }
    return fail(ErrorCode::Io, fmt::format("the lock of process {}: {}", pid_, error_text(error)));
  }
  const bool has_first = holders.front() == pid_;
  const bool is_ours =
      holders_of(pid_) == holders && (has_first || !is_locked_by_first_thread(pid_));
  if (is_ours) files_ = std::move(files);
  return is_ours;
}

// False when the time is over.
Expected<bool> ProcessLock::wait_for_it(const LockWait& wait) {
  const Clock::time_point begin = Clock::now();
  bool has_told = !wait_.tell;
  bool has_logged = !is_logged(LogLevel::Steps);
  while (!CLEW_TRY(try_lock())) {
    const auto waited = Clock::now() - begin;
    if (waited > wait.timeout) return false;
    if (is_readable(wait.stop_descriptor)) {
      return fail(ErrorCode::Io, fmt::format("stopped while {} changed process {}",
                                             holder_of(in_the_way_.get()), pid_));
    }
    if (!has_logged) {
      has_logged = true;
      log_step(pid_, "waits for {}", holder_of(in_the_way_.get()));
    }
    if (!has_told && waited > kTellAfter) {
      has_told = true;
      wait_.tell(fmt::format("waiting for {}, which changes process {}",
                             holder_of(in_the_way_.get()), pid_));
    }
    pollfd stop = {.fd = wait.stop_descriptor, .events = POLLIN, .revents = 0};
    (void)poll(&stop, 1, static_cast<int>(kPauseOfLock.count()));
  }
  return true;
}

void ProcessLock::let_go() {
  if (--holds_ != 0) return;
  files_.clear();
  log_detail(pid_, "is unlocked");
}

}  // namespace clew::inline_
