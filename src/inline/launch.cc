// SPDX-License-Identifier: Apache-2.0
// Starts a command and stops it where nothing of it has run yet but the loader: at the loader's own
// notice to debuggers (_dl_debug_state with r_debug.r_state = RT_CONSISTENT), or at the entry point
// of a static program. It is then handed over stopped by SIGSTOP and untraced, so that an
// attachment can trace it like any other process.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "inline/attachment.h"
#include "inline/attachment_state.h"
#include "inline/brief_wait.h"
#include "inline/loader.h"
#include "inline/stopped_target.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStoppedByUs = SIGTRAP;
constexpr uint8_t kInt3 = 0xcc;
constexpr unsigned kNoticesMax = 64;

template <typename T>
bool read_object(pid_t pid, uint64_t address, T& object) {
  return target::read_memory(pid, address,
                             std::span(reinterpret_cast<uint8_t*>(&object), sizeof object))
      .has_value();
}

// The loader's hook for debuggers; 0 when it has none that can be found.
uint64_t find_notice(pid_t pid, uint64_t loader_base) {
  const auto maps = target::read_memory_map(pid);
  if (!maps) return 0;
  for (const target::Mapping& map : *maps) {
    if (!map.contains(loader_base)) continue;
    const auto image = target::ModuleImage::read(fmt::format("/proc/{}/root{}", pid, map.path));
    if (!image) return 0;
    for (const target::Function& function : image->functions()) {
      for (const target::FunctionName& name : function.names) {
        if (name.linkage == "_dl_debug_state") return loader_base + function.address;
      }
    }
  }
  return 0;
}

// A command that is being started, traced by us. Killed when it does not get to the end.
class Starting {
 public:
  Starting(pid_t pid, Clock::time_point deadline) : pid_(pid), deadline_(deadline) {}
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  ~Starting() {
    if (pid_ <= 0) return;
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, __WALL);
  }

  Expected<void> run_to_start();
  Expected<void> hand_over();
  [[nodiscard]] pid_t release() { return std::exchange(pid_, -1); }
  Expected<void> wait_for_trap();

 private:
  Expected<void> run_to(uint64_t address);
  Expected<int> wait_stop();
  bool write_byte(uint64_t address, uint8_t byte);

  pid_t pid_;
  Clock::time_point deadline_;
};

Expected<int> Starting::wait_stop() {
  constexpr std::chrono::microseconds kPause{200};
  while (true) {
    int status = 0;
    const pid_t waited = waitpid(pid_, &status, __WALL | WNOHANG | WUNTRACED);
    if (waited == pid_ && WIFSTOPPED(status)) return WSTOPSIG(status);
    if (waited == pid_) {
      pid_ = -1;
      return fail(ErrorCode::NotFound, "the command ended before it began");
    }
    if (Clock::now() > deadline_) {
      return fail(ErrorCode::Io, "the command's loader does not come to its end");
    }
    wait_briefly(kPause);
  }
}

// Signals for the command go to it.
Expected<void> Starting::wait_for_trap() {
  constexpr unsigned kSignalsMax = 1000;
  for (unsigned i = 0; i < kSignalsMax; ++i) {
    const int signal = CLEW_TRY(wait_stop());
    if (signal == kStoppedByUs) return {};
    ptrace(PTRACE_CONT, pid_, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
  }
  return fail(ErrorCode::Io, "the command gets signals without end");
}

bool Starting::write_byte(uint64_t address, uint8_t byte) {
  errno = 0;
  const int64_t old = ptrace(PTRACE_PEEKTEXT, pid_, reinterpret_cast<void*>(address), nullptr);
  if (errno != 0) return false;
  const uint64_t word = (static_cast<uint64_t>(old) & ~uint64_t{0xff}) | byte;
  return ptrace(PTRACE_POKETEXT, pid_, reinterpret_cast<void*>(address),
                reinterpret_cast<void*>(word)) == 0;
}

// Runs until the instruction at `address` is next; the text is as it was then.
Expected<void> Starting::run_to(uint64_t address) {
  uint8_t old = 0;
  if (!read_object(pid_, address, old) || !write_byte(address, kInt3)) {
    return fail(ErrorCode::Io, fmt::format("cannot stop the command at {:#x}", address));
  }
  ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
  CLEW_TRY(wait_for_trap());
  user_regs_struct registers = {};
  ptrace(PTRACE_GETREGS, pid_, nullptr, &registers);
  const bool there = registers.rip == address + 1;
  registers.rip = address;
  const bool restored =
      there && write_byte(address, old) && ptrace(PTRACE_SETREGS, pid_, nullptr, &registers) == 0;
  if (restored) return {};
  return fail(ErrorCode::Io, "the command stopped at an unexpected place");
}

Expected<void> Starting::run_to_start() {
  const AuxiliaryValues values = read_auxiliary(pid_);
  const uint64_t notice = values.loader_base == 0 ? 0 : find_notice(pid_, values.loader_base);
  if (notice == 0) return run_to(values.entry);
  for (unsigned i = 0; i < kNoticesMax; ++i) {
    CLEW_TRY(run_to(notice));
    const auto state = read_loader_state(pid_);
    if (state && state->consistent) return {};
    // Step off the instruction, so that it can be stopped at again.
    ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr);
    CLEW_TRY(wait_for_trap());
  }
  return fail(ErrorCode::Io, "the command's loader does not come to its end");
}

Expected<void> Starting::hand_over() {
  const auto signal = reinterpret_cast<void*>(intptr_t{SIGSTOP});
  if (ptrace(PTRACE_DETACH, pid_, nullptr, signal) != 0) {
    return fail(ErrorCode::Io, fmt::format("detach: {}", error_text(errno)));
  }
  (void)CLEW_TRY(wait_stop());
  return {};
}

[[noreturn]] void run_child(const LaunchOptions& options, pid_t tracer, int error_pipe) {
  std::vector<char*> arguments;
  arguments.reserve(options.command.size() + 1);
  for (const std::string& argument : options.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  // The tracer blocks what it takes from a descriptor; the command starts as a shell would start
  // it.
  sigset_t none;
  (void)sigemptyset(&none);
  (void)pthread_sigmask(SIG_SETMASK, &none, nullptr);
  // Until it may run; else it would stay stopped for ever when its tracer is killed. See resume().
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It was killed already: nobody would ever let us go on.
  if (getppid() != tracer) _exit(127);
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  execvp(arguments.front(), arguments.data());
  const int error = errno;
  (void)!write(error_pipe, &error, sizeof error);
  _exit(127);
}

}  // namespace

Expected<Launched> Launched::start(const LaunchOptions& options) {
  if (options.command.empty()) return fail(ErrorCode::InvalidQuery, "no command to start");
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(ErrorCode::Io, error_text(errno));
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  const pid_t tracer = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(ErrorCode::Io, fmt::format("fork: {}", error_text(errno)));
  if (pid == 0) run_child(options, tracer, writer.get());
  writer.reset();
  Starting starting(pid, Clock::now() + options.timeout);
  int error = 0;
  if (read(reader.get(), &error, sizeof error) == sizeof error) {
    return fail(ErrorCode::NotFound,
                fmt::format("cannot start '{}': {}", options.command.front(), error_text(error)));
  }
  CLEW_TRY(starting.wait_for_trap());  // After execve.
  ptrace(PTRACE_SETOPTIONS, pid, nullptr, reinterpret_cast<void*>(PTRACE_O_EXITKILL));
  CLEW_TRY(target::check_is_64_bit(pid));
  CLEW_TRY(starting.run_to_start());
  CLEW_TRY(starting.hand_over());
  return Launched(starting.release());
}

Launched::Launched(Launched&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), resumed_(other.resumed_) {}

Launched& Launched::operator=(Launched&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(resumed_, other.resumed_);
  return *this;
}

Launched::~Launched() {
  if (pid_ <= 0 || resumed_) return;
  (void)kill(pid_, SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
}

Expected<void> Launched::resume() {
  constexpr std::chrono::milliseconds kTimeout{2000};
  StoppedTarget target = CLEW_TRY(stop_target(pid_, kTimeout));
  if (kill(pid_, SIGCONT) != 0) {
    return fail(ErrorCode::NotFound, fmt::format("process {} is gone", pid_));
  }
  // From here on its life is its own. Stopped by us only, it goes on also if we die here.
  CLEW_TRY(target.checked_call("prctl", {.number = SYS_prctl, .arguments = {PR_SET_PDEATHSIG, 0}}));
  resumed_ = true;
  return {};
}

Expected<int> Launched::wait_for_exit() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return fail(ErrorCode::Io, fmt::format("waitpid: {}", error_text(errno)));
  }
  return status;
}

std::optional<int> Launched::exit_status(std::chrono::milliseconds timeout) const {
  const FileDescriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended = {.fd = process.get(), .events = POLLIN, .revents = 0};
  (void)poll(&ended, 1, static_cast<int>(timeout.count()));
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return status;
}

}  // namespace clew::inline_
