// SPDX-License-Identifier: Apache-2.0
// Starts a command and stops it where nothing of it has run yet but the loader (program_start.h);
// or earlier or later, as it is asked. It is then handed over stopped by SIGSTOP and untraced, so
// that an attachment can trace it like any other process.
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <optional>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/log.h"
#include "inline/attachment.h"
#include "inline/attachment_state.h"
#include "inline/brief_wait.h"
#include "inline/permission.h"
#include "inline/program_start.h"
#include "inline/stopped_target.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStoppedByUs = SIGTRAP;

// Of the program, or of any module of the process; 0 when nothing has that name.
uint64_t find_function(pid_t pid, std::string_view name, bool in_libraries) {
  const auto modules = target::read_modules(pid);
  if (!modules) return 0;
  for (const target::ProcessModule& module : *modules) {
    if (module.is_executable == in_libraries || !module.problem.empty()) continue;
    const auto image = target::ModuleImage::read(module.open_path);
    if (!image) continue;
    for (const target::Function& function : image->functions()) {
      for (const target::FunctionName& each : function.names) {
        if (each.linkage == name) return module.load_bias + function.address;
      }
    }
  }
  return 0;
}

// A command that is being started, traced by us. Killed when it does not get to the end.
class Starting {
 public:
  Starting(pid_t pid, Clock::time_point deadline, std::optional<int>* failed_with = nullptr)
      : pid_(pid), deadline_(deadline), failed_with_(failed_with) {}
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  ~Starting() {
    if (pid_ <= 0) return;
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, __WALL);
  }

  Expected<void> run_to(LaunchPoint point);
  Expected<void> hand_over();
  [[nodiscard]] pid_t release() { return std::exchange(pid_, -1); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  Expected<void> wait_for_trap() { return wait_for(kStoppedByUs, PTRACE_CONT); }
  // Signals for the command go to it, and it goes on by `resume`.
  Expected<void> wait_for(int stop, __ptrace_request resume);

 private:
  Expected<void> run_to_main();
  Expected<void> run_to(uint64_t address);
  template <typename Way>
  Expected<void> go(Way way);
  Expected<int> wait_stop();

  pid_t pid_;
  Clock::time_point deadline_;
  std::optional<int>* failed_with_;
};

// A step is over at one of the first looks.
Expected<int> Starting::wait_stop() {
  constexpr std::chrono::microseconds kPause{200};
  constexpr unsigned kBriskLooks = 1000;
  for (unsigned looks = 0;; ++looks) {
    int status = 0;
    const pid_t waited = waitpid(pid_, &status, __WALL | WNOHANG | WUNTRACED);
    if (waited == pid_ && WIFSTOPPED(status)) return WSTOPSIG(status);
    if (waited == pid_) {
      pid_ = -1;
      if (failed_with_ != nullptr) *failed_with_ = status;
      return fail(ErrorCode::NotFound, "the command ended before it began");
    }
    if (Clock::now() > deadline_) {
      return fail(ErrorCode::Io, "the command's loader did not finish in time");
    }
    if (looks > kBriskLooks) wait_briefly(kPause);
  }
}

Expected<void> Starting::wait_for(int stop, __ptrace_request resume) {
  constexpr unsigned kSignalsMax = 1000;
  for (unsigned i = 0; i < kSignalsMax; ++i) {
    const int signal = CLEW_TRY(wait_stop());
    if (signal == stop) return {};
    ptrace(resume, pid_, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
  }
  return fail(ErrorCode::Io, "the command gets signals without end");
}

// A signal that comes is handled from its first instruction on, in steps as well.
template <typename Way>
Expected<void> Starting::go(Way way) {
  bool is_there = CLEW_TRY(way.begin());
  while (!is_there) {
    ptrace(way.how(), pid_, nullptr, nullptr);
    CLEW_TRY(wait_for(kStoppedByUs, way.how()));
    is_there = CLEW_TRY(way.trapped());
  }
  return {};
}

Expected<void> Starting::run_to(uint64_t address) {
  return go(RunTo(pid_, address));
}

// Programs without symbols have none of main(), but it is the first argument of the C library's
// function that calls it.
Expected<void> Starting::run_to_main() {
  if (const uint64_t own = find_function(pid_, "main", false); own != 0) return run_to(own);
  const uint64_t caller = find_function(pid_, "__libc_start_main", true);
  if (caller == 0) {
    return fail(ErrorCode::NotFound, "the command has no function main() that can be found");
  }
  CLEW_TRY(run_to(caller));
  user_regs_struct registers = {};
  ptrace(PTRACE_GETREGS, pid_, nullptr, &registers);
  return run_to(registers.rdi);
}

Expected<void> Starting::run_to(LaunchPoint point) {
  if (point == LaunchPoint::Exec) return {};
  CLEW_TRY(go(ProgramStart(pid_)));
  return point == LaunchPoint::Main ? run_to_main() : Expected<void>();
}

Expected<void> Starting::hand_over() {
  const auto signal = reinterpret_cast<void*>(intptr_t{SIGSTOP});
  if (ptrace(PTRACE_DETACH, pid_, nullptr, signal) != 0) {
    return fail(ErrorCode::Io, fmt::format("detach: {}", error_text(errno)));
  }
  (void)CLEW_TRY(wait_stop());
  return {};
}

// What the child says when it does not become the command.
struct StartError {
  int number;      // errno.
  bool forbidden;  // Already to be traced.
};

// In the child, which is a copy with one thread.
void change_environment(const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    // putenv(3) of a name alone takes it out (glibc). NOLINTNEXTLINE(concurrency-mt-unsafe)
    (void)putenv(const_cast<char*>(change.c_str()));
  }
}

// `path`: where the command seems to be; null: it is looked for, as a shell does it.
[[noreturn]] void run_child(const LaunchOptions& options, const char* path, pid_t tracer,
                            int error_pipe) {
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
  change_environment(options.environment);
  // Until it may run; else it would stay stopped for ever when its tracer is killed. See resume().
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It was killed already: nobody would ever let us go on.
  if (getppid() != tracer) _exit(127);
  StartError error{};
  error.forbidden = ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0;
  if (!error.forbidden && path != nullptr) {
    (void)kill(getpid(), SIGSTOP);
    (void)prctl(PR_SET_PDEATHSIG, 0);  // PTRACE_O_EXITKILL does the same until the exec is done.
    (void)kill(getpid(), SIGSTOP);     // Whoever counts its calls from here on sees the exec first.
    execv(path, arguments.data());
  }
  // A script without its interpreter's name, or what may not be run here: another may stand behind.
  const bool finds_it = path == nullptr || errno == ENOEXEC || errno == EACCES;
  if (!error.forbidden && finds_it) execvp(arguments.front(), arguments.data());
  error.number = errno;
  (void)!write(error_pipe, &error, sizeof error);
  _exit(127);
}

// Folders may be entered, and are no commands.
bool is_command(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && access(path.c_str(), X_OK) == 0;
}

// Where execvp(3) would find it. An empty element of PATH, also the last one, is the folder that we
// are in.
Expected<std::string> find_command(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody changes it.
  std::istringstream folders((path == nullptr ? "/bin:/usr/bin" : path) + std::string(":"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_command(file)) return file;
  }
  return fail(ErrorCode::NotFound, fmt::format("cannot start '{}': {}", name, error_text(ENOENT)));
}

struct ErrorPipe {
  FileDescriptor reader;
  FileDescriptor writer;
};

Expected<ErrorPipe> make_error_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(ErrorCode::Io, error_text(errno));
  return ErrorPipe{.reader = FileDescriptor(ends[0]), .writer = FileDescriptor(ends[1])};
}

Expected<pid_t> fork_child(const LaunchOptions& options, const char* path, int error_pipe) {
  const pid_t tracer = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(ErrorCode::Io, fmt::format("fork: {}", error_text(errno)));
  if (pid == 0) run_child(options, path, tracer, error_pipe);
  return pid;
}

// What the child told of its exec: nothing when that was done. The status is as at
// LaunchOptions::failed_with.
Expected<void> read_exec_error(const FileDescriptor& reader, const std::string& command,
                               std::optional<int>* failed_with = nullptr) {
  StartError error{};
  if (read(reader.get(), &error, sizeof error) != sizeof error) return {};
  if (error.forbidden) return no_permission("a command");
  const bool is_missing = error.number == ENOENT;
  if (failed_with != nullptr) *failed_with = W_EXITCODE(is_missing ? 127 : 126, 0);
  const Expected<std::string> path = find_command(command);
  const bool is_there = is_missing && path && is_command(*path);
  return fail(ErrorCode::NotFound,
              fmt::format("cannot start '{}': {}", command,
                          is_there ? "the interpreter or loader that it names is not there"
                                   : error_text(error.number)));
}

}  // namespace

Expected<Launched> Launched::start_before_exec(const LaunchOptions& options) {
  if (options.command.empty()) return fail(ErrorCode::InvalidQuery, "no command to start");
  const std::string path = CLEW_TRY(find_command(options.command.front()));
  ErrorPipe pipe = CLEW_TRY(make_error_pipe());
  const pid_t pid = CLEW_TRY(fork_child(options, path.c_str(), pipe.writer.get()));
  pipe.writer.reset();
  Starting starting(pid, Clock::now() + options.timeout);
  const Expected<void> stopped = starting.wait_for(SIGSTOP, PTRACE_CONT);
  if (!stopped) {
    CLEW_TRY(read_exec_error(pipe.reader, options.command.front()));
    return tl::unexpected(stopped.error());
  }
  ptrace(PTRACE_SETOPTIONS, pid, nullptr,
         reinterpret_cast<void*>(intptr_t{PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC}));
  ptrace(PTRACE_CONT, pid, nullptr, nullptr);
  CLEW_TRY(starting.wait_for(SIGSTOP, PTRACE_CONT));
  Launched launched(starting.release());
  launched.exec_error_ = std::move(pipe.reader);
  launched.command_ = options.command.front();
  return launched;
}

// It stops once more where the new program begins, whose life is its own from there on.
Expected<void> Launched::resume_before_exec() {
  constexpr std::chrono::seconds kTimeout{10};
  const FileDescriptor error = std::move(exec_error_);
  Starting starting(std::exchange(pid_, -1), Clock::now() + kTimeout);
  ptrace(PTRACE_CONT, starting.pid(), nullptr, nullptr);
  Expected<void> begun = starting.wait_for_trap();
  if (!begun) {
    CLEW_TRY(read_exec_error(error, command_));
    return begun;
  }
  ptrace(PTRACE_DETACH, starting.pid(), nullptr, nullptr);
  pid_ = starting.release();
  resumed_ = true;
  return {};
}

Expected<Launched> Launched::start(const LaunchOptions& options) {
  if (options.command.empty()) return fail(ErrorCode::InvalidQuery, "no command to start");
  ErrorPipe pipe = CLEW_TRY(make_error_pipe());
  const pid_t pid = CLEW_TRY(fork_child(options, nullptr, pipe.writer.get()));
  pipe.writer.reset();
  Starting starting(pid, Clock::now() + options.timeout, options.failed_with);
  CLEW_TRY(read_exec_error(pipe.reader, options.command.front(), options.failed_with));
  CLEW_TRY(starting.wait_for_trap());  // After execve.
  ptrace(PTRACE_SETOPTIONS, pid, nullptr, reinterpret_cast<void*>(PTRACE_O_EXITKILL));
  CLEW_TRY(starting.run_to(options.point));
  CLEW_TRY(starting.hand_over());
  log_step(pid, "is the command {}, stopped before its own code", options.command.front());
  return Launched(starting.release());
}

Launched::Launched(Launched&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      resumed_(other.resumed_),
      exec_error_(std::move(other.exec_error_)),
      command_(std::move(other.command_)) {}

Launched& Launched::operator=(Launched&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(resumed_, other.resumed_);
  std::swap(exec_error_, other.exec_error_);
  std::swap(command_, other.command_);
  return *this;
}

Launched::~Launched() {
  if (pid_ <= 0 || resumed_) return;
  (void)kill(pid_, SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
}

Expected<void> Launched::set_free() {
  constexpr std::chrono::milliseconds kTimeout{2000};
  StoppedTarget target = CLEW_TRY(stop_target(pid_, kTimeout));
  CLEW_TRY(target.checked_call("prctl", {.number = SYS_prctl, .arguments = {PR_SET_PDEATHSIG, 0}}));
  target.resume();
  return {};
}

Expected<void> Launched::go_on() {
  if (kill(pid_, SIGCONT) != 0) {
    return fail(ErrorCode::NotFound, fmt::format("process {} is gone", pid_));
  }
  resumed_ = true;
  log_step(pid_, "the command runs");
  return {};
}

Expected<void> Launched::resume() {
  if (exec_error_.valid()) return resume_before_exec();
  constexpr std::chrono::milliseconds kTimeout{2000};
  StoppedTarget target = CLEW_TRY(stop_target(pid_, kTimeout));
  if (kill(pid_, SIGCONT) != 0) {
    return fail(ErrorCode::NotFound, fmt::format("process {} is gone", pid_));
  }
  // From here on its life is its own. Stopped by us only, it goes on also if we die here.
  CLEW_TRY(target.checked_call("prctl", {.number = SYS_prctl, .arguments = {PR_SET_PDEATHSIG, 0}}));
  resumed_ = true;
  target.resume();
  log_step(pid_, "the command runs");
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
