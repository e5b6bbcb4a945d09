// SPDX-License-Identifier: Apache-2.0
#include "inline/debug_registers.h"

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

namespace clew::inline_ {
namespace {

constexpr size_t kAddress = 0;           // DR0
constexpr size_t kControl = 7;           // DR7
constexpr uint64_t kExecuteAtFirst = 1;  // Breakpoint 0, of one thread, on execution.

bool set_register(pid_t pid, size_t index, uint64_t value) {
  const size_t place = offsetof(struct user, u_debugreg) + index * sizeof(uint64_t);
  return ptrace(PTRACE_POKEUSER, pid, reinterpret_cast<void*>(place),
                reinterpret_cast<void*>(value)) == 0;
}

bool set(pid_t pid, uint64_t address) {
  return set_register(pid, kAddress, address) && set_register(pid, kControl, kExecuteAtFirst);
}

[[gnu::noinline]] void pass_by() {
  asm volatile("nop");
}

// It must not stay stopped for ever when its tracer is killed.
[[noreturn]] void run_child(pid_t tracer) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == tracer && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) {
    (void)kill(getpid(), SIGSTOP);
    pass_by();
  }
  _exit(0);
}

// `child` is no process of ours any more, -1, when it has ended.
bool stops_by(pid_t& child, int signal) {
  int status = 0;
  if (waitpid(child, &status, __WALL) != child) return false;
  if (!WIFSTOPPED(status)) child = -1;
  return WIFSTOPPED(status) && WSTOPSIG(status) == signal;
}

bool try_one() {
  const char* const none = getenv("CLEW_NO_DEBUG_REGISTERS");  // NOLINT(concurrency-mt-unsafe)
  if (none != nullptr && std::strcmp(none, "1") == 0) return false;
  const pid_t tracer = getpid();
  pid_t child = fork();
  if (child == 0) run_child(tracer);
  if (child < 0) return true;  // Who cannot fork starts no command either.
  const bool fired = stops_by(child, SIGSTOP) && set(child, reinterpret_cast<uint64_t>(&pass_by)) &&
                     ptrace(PTRACE_CONT, child, nullptr, nullptr) == 0 && stops_by(child, SIGTRAP);
  if (child > 0) {
    (void)kill(child, SIGKILL);
    (void)waitpid(child, nullptr, __WALL);
  }
  return fired;
}

bool fire() {
  const bool fired = try_one();
  if (!fired) log_step(0, "breakpoints of the processor do not work on this machine");
  return fired;
}

}  // namespace

bool set_breakpoint(pid_t pid, uint64_t address) {
  static const bool kFire = fire();
  return kFire && set(pid, address);
}

bool clear_breakpoint(pid_t pid) {
  return set_register(pid, kControl, 0);
}

}  // namespace clew::inline_
