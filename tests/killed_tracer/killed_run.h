// SPDX-License-Identifier: Apache-2.0
// Runs a tracer and kills it at a point that is chosen beforehand: at the entry or the exit of its
// n-th system call that changes a process, some instructions behind that, or after a time.
//
// The tracer is followed with ptrace(2), which does not hinder it from tracing others itself. So it
// needs no hook for tests, and what is killed is the command that users have.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace clew::killed_tracer {

// Points are counted from 1: the entry of the first call that changes something (the call is then
// not made), its exit (it was made), the entry of the second one, and so on.
struct KillAt {
  std::optional<uint64_t> point = {};
  uint32_t steps = 0;                                  // So many instructions behind the point.
  std::optional<std::chrono::microseconds> time = {};  // Since the start; nobody follows then.
};

// A process that has ended and that nobody has waited for yet, as when its parent is busy.
class Unburied {
 public:
  explicit Unburied(pid_t pid) : pid_(pid) {}
  Unburied(Unburied&& other) noexcept;
  Unburied& operator=(Unburied&&) = delete;
  ~Unburied();
  // The status of waitpid(2); 0 when it was asked before.
  int bury();

 private:
  pid_t pid_;
};

struct KilledRun {
  KilledRun(pid_t pid, FileDescriptor printed) : tracer(pid), output(std::move(printed)) {}

  // All that it and its children have printed until now.
  [[nodiscard]] std::string read_output() const;

  Unburied tracer;
  FileDescriptor output;
  bool was_killed = false;  // False: it ended before.
  uint64_t points = 0;      // Until it ended.
  std::string place;        // Of the last point: "exit of ptrace(SETREGS) for mmap".
  // The system call that the traced process makes for the tracer; -1 when that knows the result.
  int64_t call_of_target = -1;
  // Threads that were asked to stop; nobody may have looked at their registers yet.
  // Not known of a run that nobody followed.
  std::optional<std::set<pid_t>> stopping;
  std::chrono::microseconds time{0};
};

// Errors are exceptions: the test cannot go on.
KilledRun run_and_kill(const std::vector<std::string>& command, const KillAt& at);

}  // namespace clew::killed_tracer
