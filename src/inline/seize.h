// SPDX-License-Identifier: Apache-2.0
// PTRACE_SEIZE of one thread after the other. It waits while another thread of the process executes
// a program (cred_guard_mutex, kernel/ptrace.c of Linux 6.18), and that one waits until those of
// its threads that are traced have been waited for (de_thread(), fs/exec.c): by us, who wait. So
// the ends of threads that we have, and their stops before that, are taken in a signal's handler
// meanwhile.
#pragma once

#include <cstdint>
#include <ctime>
#include <span>

#include <sys/types.h>

namespace clew::inline_ {

// While it lives, SIGALRM comes to its thread from time to time. One at a time in a program.
class Seizing {
 public:
  // The process, whose first thread's end is left to who waits for the process.
  explicit Seizing(pid_t process);
  Seizing(const Seizing&) = delete;
  Seizing& operator=(const Seizing&) = delete;
  ~Seizing();

  // As ptrace(2), with errno. Of the threads that were seized before, those that end meanwhile are
  // waited for, so who asks for them later gets ECHILD.
  [[nodiscard]] int64_t seize(pid_t thread, uint64_t options, std::span<const pid_t> before) const;

 private:
  pid_t process_;
  timer_t timer_{};
  bool has_timer_ = false;
};

}  // namespace clew::inline_
