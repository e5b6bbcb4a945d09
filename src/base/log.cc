// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/error_text.h"

namespace clew {
namespace detail {

constinit std::atomic<LogLevel> log_level{LogLevel::Off};

}  // namespace detail

namespace {

struct Places {
  std::atomic<LogLevel> standard_error{LogLevel::Off};
  std::atomic<int> file{-1};
};
constinit Places places;

// When the first place was opened.
constinit std::atomic<int64_t> begin_ns{0};

void note_place(LogLevel level) {
  int64_t unset = 0;
  (void)begin_ns.compare_exchange_strong(unset, clock_ns(CLOCK_MONOTONIC));
  const LogLevel now = detail::log_level.load(std::memory_order_relaxed);
  detail::log_level.store(std::max(now, level), std::memory_order_relaxed);
}

// Names of files and functions are foreign: a line stays one, and no terminal is told anything.
void append_harmless(std::string& line, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
}

bool write_whole(int file, std::string_view line) {
  ssize_t written = 0;
  do {
    written = write(file, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(line.size());
}

// Whoever comes first closes it to all others, and says so.
void give_up_file(int file) {
  const std::string why = error_text(errno);
  if (!places.file.compare_exchange_strong(file, -1)) return;
  fmt::print(stderr, "clew: warning: CLEW_LOG ends here: {}\n", why);
}

Expected<void> check_log_file(const std::string& path, int file) {
  struct stat info = {};
  if (fstat(file, &info) != 0) {
    return fail(ErrorCode::Io, fmt::format("CLEW_LOG: {}: {}", path, error_text(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::Refused, fmt::format("CLEW_LOG: {} is not a regular file", path));
  }
  if (info.st_uid != geteuid()) {
    return fail(ErrorCode::Refused, fmt::format("CLEW_LOG: {} belongs to another user", path));
  }
  return {};
}

}  // namespace

void log_to_standard_error(LogLevel level) {
  places.standard_error.store(level, std::memory_order_relaxed);
  note_place(level);
}

Expected<void> log_to_file(const std::string& path) {
  // A pipe or a terminal must not keep us waiting, or become ours, before we see what it is.
  constexpr int kFlags =
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
  const int file = open(path.c_str(), kFlags, S_IRUSR | S_IWUSR);
  if (file < 0) {
    const std::string why = errno == ELOOP ? "it is a symbolic link" : error_text(errno);
    return fail(ErrorCode::Io, fmt::format("CLEW_LOG: {}: {}", path, why));
  }
  Expected<void> checked = check_log_file(path, file);
  if (!checked) {
    (void)close(file);
    return checked;
  }
  places.file.store(file, std::memory_order_relaxed);
  note_place(LogLevel::Details);
  return {};
}

void end_log() {
  detail::log_level.store(LogLevel::Off, std::memory_order_relaxed);
  places.standard_error.store(LogLevel::Off, std::memory_order_relaxed);
  const int file = places.file.exchange(-1);
  if (file >= 0) (void)close(file);
}

void detail::write_log_line(LogLevel level, pid_t pid, fmt::string_view format,
                            fmt::format_args arguments) {
  const int error = errno;  // What is logged may be about it.
  const int64_t now_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns.load(std::memory_order_relaxed);
  std::string line = fmt::format("{:.3f} s  ", static_cast<double>(now_ns) / 1e9);
  if (pid != 0) line += fmt::format("pid {}  ", pid);
  append_harmless(line, fmt::vformat(format, arguments));
  line += '\n';
  if (places.standard_error.load(std::memory_order_relaxed) >= level) {
    (void)write_whole(STDERR_FILENO, line);
  }
  const int file = places.file.load(std::memory_order_relaxed);
  if (file >= 0 && !write_whole(file, line)) give_up_file(file);
  errno = error;
}

}  // namespace clew
