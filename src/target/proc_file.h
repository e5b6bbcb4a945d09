// SPDX-License-Identifier: Apache-2.0
// Reading files and links of /proc/PID, with a missing process told apart from a missing right.
// Internal to target/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace clew::target {

// "/proc/PID/name"
std::string proc_path(pid_t pid, std::string_view name);

// The whole file. NotFound when the process is gone, Io when it may not be read, Limit when it is
// beyond 256 MiB (no file of /proc/PID gets there with the kernel's own limits).
Expected<std::string> read_proc_file(pid_t pid, std::string_view name);

// Where a link leads, as the kernel shows it.
Expected<std::string> read_proc_link(pid_t pid, std::string_view name);

// The names in a directory that are numbers, ascending: processes in /proc, threads in
// /proc/PID/task.
Expected<std::vector<pid_t>> read_number_names(const std::string& directory);

// An error that says what the process is when it runs no program: a kernel thread, or a zombie.
Expected<void> check_has_program(pid_t pid);

// The error for a failed system call on a file of the process: NotFound, or Io with a next step.
Error proc_error(pid_t pid, std::string_view what, int system_error);

}  // namespace clew::target
