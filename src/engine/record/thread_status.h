// SPDX-License-Identifier: Apache-2.0
// What /proc says of a traced thread, which may end at any moment. Its numbers are the kernel's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

namespace clew::engine {

struct ThreadStatus {
  pid_t process = 0;  // 0: there is no such thread.
  pid_t tracer = 0;
  char state = 'X';       // target::ProcessState
  uint64_t switches = 0;  // How often it has begun to wait.
  uint64_t caught = 0;    // Bit n - 1: signal n.
  uint64_t ignored = 0;
  uint64_t blocked = 0;
  // Of its process: the first one of its pid name space, which signals kill only as a last resort.
  bool is_init = false;

  [[nodiscard]] bool has_ended() const { return state == 'Z' || state == 'X'; }
};

ThreadStatus status_of(pid_t thread);

// A thread that waits in the kernel, though it is not stopped.
struct Waiting {
  bool is_in_call = false;       // Else in a page fault, as a rule.
  user_regs_struct registers{};  // rip and rsp; in a call, its number (orig_rax) and arguments.
};

// Nothing for one that runs, or where the kernel does not say.
std::optional<Waiting> waiting(pid_t process, pid_t thread);

// It has made a child that runs on its memory, and the kernel wakes it for nothing but the child's
// end or exec: if it was asked to stop, it does so then, before it runs anything of the program.
bool waits_for_vfork(pid_t process, pid_t thread);

std::vector<pid_t> threads_of(pid_t process);

// A child in vfork: what is changed in it is changed in its parent.
bool runs_on_its_parents_memory(pid_t process);

}  // namespace clew::engine
