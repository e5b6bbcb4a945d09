// SPDX-License-Identifier: Apache-2.0
#include "killed_tracer/killed_run.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace clew::killed_tracer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kPatienceSeconds = 60;
constexpr int kSystemCallStop = SIGTRAP | 0x80;

struct Name {
  uint64_t number;
  std::string_view text;
};

// Requests of ptrace(2) that change the traced process. The others only look.
constexpr std::array<Name, 13> kRequests = {{{PTRACE_TRACEME, "TRACEME"},
                                             {PTRACE_POKETEXT, "POKETEXT"},
                                             {PTRACE_POKEDATA, "POKEDATA"},
                                             {PTRACE_CONT, "CONT"},
                                             {PTRACE_SINGLESTEP, "SINGLESTEP"},
                                             {PTRACE_SETREGS, "SETREGS"},
                                             {PTRACE_DETACH, "DETACH"},
                                             {PTRACE_SYSCALL, "SYSCALL"},
                                             {PTRACE_SETOPTIONS, "SETOPTIONS"},
                                             {PTRACE_SETREGSET, "SETREGSET"},
                                             {PTRACE_SEIZE, "SEIZE"},
                                             {PTRACE_INTERRUPT, "INTERRUPT"},
                                             {PTRACE_SETSIGMASK, "SETSIGMASK"}}};

// Other calls that do, or that change memory which is shared with it. A tracer waits for the calls
// that the target makes: behind wait4 they have been made, or are about to be.
constexpr std::array<Name, 10> kCalls = {{{SYS_pwrite64, "pwrite"},
                                          {SYS_pwritev, "pwritev"},
                                          {SYS_process_vm_writev, "process_vm_writev"},
                                          {SYS_wait4, "wait4"},
                                          {SYS_kill, "kill"},
                                          {SYS_tgkill, "tgkill"},
                                          {SYS_ftruncate, "ftruncate"},
                                          {SYS_sendmsg, "sendmsg"},
                                          {SYS_fork, "fork"},
                                          {SYS_clone, "clone"}}};

// What tracers have processes do for them.
constexpr std::array<Name, 16> kRemoteCalls = {{{SYS_memfd_create, "memfd_create"},
                                                {SYS_mmap, "mmap"},
                                                {SYS_munmap, "munmap"},
                                                {SYS_munlock, "munlock"},
                                                {SYS_mprotect, "mprotect"},
                                                {SYS_mremap, "mremap"},
                                                {SYS_madvise, "madvise"},
                                                {SYS_close, "close"},
                                                {SYS_prctl, "prctl"},
                                                {SYS_membarrier, "membarrier"},
                                                {SYS_socketpair, "socketpair"},
                                                {SYS_recvmsg, "recvmsg"},
                                                {SYS_arch_prctl, "arch_prctl"},
                                                {SYS_fcntl, "fcntl"},
                                                {SYS_ftruncate, "ftruncate"},
                                                {SYS_rt_sigprocmask, "rt_sigprocmask"}}};

template <size_t Count>
std::string_view name_of(const std::array<Name, Count>& names, uint64_t number) {
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const Name& name) { return name.number == number; });
  return found == names.end() ? std::string_view() : found->text;
}

[[noreturn]] void become(char* const* arguments, int output, bool is_followed) {
  dup2(output, 1);
  dup2(output, 2);
  if (is_followed) ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  execv(arguments[0], arguments);
  _exit(127);
}

pid_t start(std::vector<std::string> command, int output, bool is_followed) {
  std::vector<char*> arguments;
  for (std::string& word : command)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) become(arguments.data(), output, is_followed);
  return pid;
}

// Waits until it has ended, and says how: CLD_KILLED, say. It stays to be buried.
int await_end(pid_t pid) {
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) throw std::runtime_error("waitid");
  }
  return info.si_code;
}

// Follows one tracer from stop to stop.
class Follower {
 public:
  Follower(pid_t pid, KilledRun& run) : pid_(pid), run_(run) {}

  void follow(const KillAt& at);

 private:
  // False when it has ended.
  bool wait_for_stop();
  bool go_on(int request);
  void note_signal();
  bool note_call();
  bool is_point(const __ptrace_syscall_info& info);
  void note_trace_call(bool is_entry);
  void step(uint32_t count);

  pid_t pid_;
  KilledRun& run_;
  int status_ = 0;
  int signal_ = 0;  // To be delivered.
  __ptrace_syscall_info entry_{};
  int64_t last_registers_rax_ = -1;
  int64_t last_remote_call_ = -1;
};

// An end is left to be buried.
bool Follower::wait_for_stop() {
  siginfo_t info = {};
  alarm(kPatienceSeconds);  // Its handler ends waits.
  const bool has_waited =
      waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOWAIT) == 0;
  alarm(0);
  if (!has_waited) {
    (void)kill(pid_, SIGKILL);
    throw std::runtime_error("the tracer hangs behind the " + run_.place);
  }
  const bool has_ended =
      info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  return !has_ended && waitpid(pid_, &status_, __WALL) == pid_ && WIFSTOPPED(status_);
}

bool Follower::go_on(int request) {
  const int signal = std::exchange(signal_, 0);
  (void)ptrace(static_cast<__ptrace_request>(request), pid_, nullptr,
               reinterpret_cast<void*>(intptr_t{signal}));
  return wait_for_stop();
}

// What the tracer does to its own tracee, as far as the checks need to know it.
void Follower::note_trace_call(bool is_entry) {
  const auto tid = static_cast<pid_t>(entry_.entry.args[1]);
  const uint64_t request = entry_.entry.args[0];
  if (is_entry && request == PTRACE_SETREGS) {
    user_regs_struct registers = {};
    iovec ours = {.iov_base = &registers, .iov_len = sizeof registers};
    iovec theirs = {.iov_base = reinterpret_cast<void*>(entry_.entry.args[3]),
                    .iov_len = sizeof registers};
    const bool read = process_vm_readv(pid_, &ours, 1, &theirs, 1, 0) == sizeof registers;
    last_registers_rax_ = read ? static_cast<int64_t>(registers.rax) : -1;
    run_.call_of_target = -1;
  }
  if (is_entry) return;
  // With these registers it makes the call, also when it is let go instead of asked to.
  const bool is_call = request == PTRACE_SETREGS &&
                       !name_of(kRemoteCalls, static_cast<uint64_t>(last_registers_rax_)).empty();
  if (is_call) run_.call_of_target = last_remote_call_ = last_registers_rax_;
  if (request == PTRACE_INTERRUPT) {
    run_.stopping->insert(tid);
  } else if (request == PTRACE_SETREGS) {
    run_.stopping->erase(tid);
  } else if (request != PTRACE_SEIZE) {
    run_.stopping->clear();  // It does something else now.
  }
}

bool Follower::is_point(const __ptrace_syscall_info& info) {
  const bool is_entry = info.op == PTRACE_SYSCALL_INFO_ENTRY;
  if (is_entry) entry_ = info;
  const uint64_t number = entry_.entry.nr;
  std::string_view name = name_of(kCalls, number);
  std::string request;
  if (number == SYS_wait4) return !is_entry && info.exit.rval > 0;
  if (number == SYS_ptrace) {
    name = name_of(kRequests, entry_.entry.args[0]);
    if (!name.empty()) note_trace_call(is_entry);
  } else if (!name.empty()) {
    run_.stopping->clear();
  }
  return !name.empty();
}

void Follower::note_signal() {
  const bool is_event = status_ >> 16 != 0 || WSTOPSIG(status_) == SIGTRAP;
  signal_ = is_event ? 0 : WSTOPSIG(status_);
}

// At a stop. True when it is a point.
bool Follower::note_call() {
  if (WSTOPSIG(status_) != kSystemCallStop) {
    note_signal();
    return false;
  }
  __ptrace_syscall_info info = {};
  (void)ptrace(PTRACE_GET_SYSCALL_INFO, pid_, reinterpret_cast<void*>(sizeof info), &info);
  if (!is_point(info)) return false;
  ++run_.points;
  const bool is_trace = entry_.entry.nr == SYS_ptrace;
  const std::string what = is_trace
                               ? fmt::format("ptrace({})", name_of(kRequests, entry_.entry.args[0]))
                               : std::string(name_of(kCalls, entry_.entry.nr));
  const std::string_view remote = name_of(kRemoteCalls, static_cast<uint64_t>(last_remote_call_));
  run_.place =
      fmt::format("{} of {}", info.op == PTRACE_SYSCALL_INFO_ENTRY ? "entry" : "exit", what);
  if (!remote.empty()) run_.place += fmt::format(", last remote call {}", remote);
  return true;
}

void Follower::step(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!go_on(PTRACE_SINGLESTEP)) return;
    note_signal();
  }
}

void Follower::follow(const KillAt& at) {
  if (!wait_for_stop()) throw std::runtime_error("the tracer does not start");
  (void)ptrace(PTRACE_SETOPTIONS, pid_, nullptr,
               reinterpret_cast<void*>(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
  while (go_on(PTRACE_SYSCALL)) {
    if (!note_call() || run_.points != at.point) continue;
    if (at.steps != 0) {
      run_.stopping.reset();  // Nobody looks at its calls from here on.
      step(at.steps);
    }
    break;
  }
}

void wait_and_kill(pid_t pid, std::chrono::microseconds time) {
  const auto nanoseconds = std::chrono::nanoseconds(time).count();
  const timespec moment = {.tv_sec = nanoseconds / 1'000'000'000,
                           .tv_nsec = nanoseconds % 1'000'000'000};
  const FileDescriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd end = {.fd = process.get(), .events = POLLIN, .revents = 0};
  (void)ppoll(&end, 1, &moment, nullptr);
  (void)kill(pid, SIGKILL);
}

}  // namespace

Unburied::Unburied(Unburied&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Unburied::~Unburied() {
  (void)bury();
}

std::string KilledRun::read_output() const {
  std::string content;
  std::array<char, 4096> part{};
  for (ssize_t got = 1; got > 0;) {
    got = pread(output.get(), part.data(), part.size(), static_cast<off_t>(content.size()));
    content.append(part.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return content;
}

int Unburied::bury() {
  int status = 0;
  if (pid_ > 0) (void)waitpid(std::exchange(pid_, -1), &status, __WALL);
  return status;
}

KilledRun run_and_kill(const std::vector<std::string>& command, const KillAt& at) {
  FileDescriptor output(memfd_create("output", MFD_CLOEXEC));
  const Clock::time_point begin = Clock::now();
  const pid_t pid = start(command, output.get(), !at.time.has_value());
  KilledRun run(pid, std::move(output));
  if (at.time) {
    wait_and_kill(pid, *at.time);
  } else {
    run.stopping.emplace();
    Follower(pid, run).follow(at);
    (void)kill(pid, SIGKILL);
  }
  run.was_killed = await_end(pid) == CLD_KILLED;
  run.time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  return run;
}

}  // namespace clew::killed_tracer
