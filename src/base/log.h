// SPDX-License-Identifier: Apache-2.0
// A log of what is done to which process and why, one line for each step, with the time since Clew
// began: on standard error (-v, -vv) and at the end of a file (CLEW_LOG). Stages say what they know
// anyway, where they end; what a user has to know is no matter of the log, but of losses and
// errors.
//
// Off, a call is a relaxed load and a branch: its arguments are values that are there, and are not
// formatted. A line is one write(2), so lines of several threads, and of several Clews in one file,
// are whole. The writer may be kept waiting (a pipe that nobody reads, perhaps of the very process
// that is traced): nothing is logged while a process stands still for us, or in a forked child that
// has not called exec yet.
//
// The levels are the one mutable global of Clew: a logger passed through every stage would be an
// argument of every function, and could differ in nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <sys/types.h>

#include "base/error.h"

namespace clew {

enum class LogLevel : uint8_t {
  Off,
  Steps,    // -v: one line for each step.
  Details,  // -vv, CLEW_LOG: also each site, each mapping, each module of a step.
};

// Lines up to this level go to standard error from now on.
void log_to_standard_error(LogLevel level);

// All lines go to the end of this file, too, which is made when it is not there. Its path is not
// followed when it is a symbolic link, and no device, pipe or file of somebody else is written.
// Errors: Io or Refused, which name the file; nothing is logged there then. Once, before any line.
Expected<void> log_to_file(const std::string& path);

// The end of both, as at the beginning. No other thread logs meanwhile.
void end_log();

namespace detail {
// The highest level that any place wants.
extern constinit std::atomic<LogLevel> log_level;
void write_log_line(LogLevel level, pid_t pid, fmt::string_view format, fmt::format_args arguments);
}  // namespace detail

inline bool is_logged(LogLevel level) {
  return detail::log_level.load(std::memory_order_relaxed) >= level;
}

// A line about a process, or about none of them (0): "0.012 s  pid 1234  stopped 5 threads".
template <typename... Arguments>
void log_step(pid_t pid, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (!is_logged(LogLevel::Steps)) [[likely]]
    return;
  detail::write_log_line(LogLevel::Steps, pid, format, fmt::make_format_args(arguments...));
}

// The same for what a step consists of.
template <typename... Arguments>
void log_detail(pid_t pid, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (!is_logged(LogLevel::Details)) [[likely]]
    return;
  detail::write_log_line(LogLevel::Details, pid, format, fmt::make_format_args(arguments...));
}

// How long a step took, for its line.
class StepTime {
 public:
  [[nodiscard]] double ms() const {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    return Milliseconds(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace clew
