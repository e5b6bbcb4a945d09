// SPDX-License-Identifier: Apache-2.0
#include "cmd/trial_cluster.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/error_text.h"
#include "base/run_program.h"
#include "cmd/console.h"

namespace clew::cmd {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBeginNs = 10'000'000'000;  // For a server or a machine to be there.
constexpr const char* kAddress = "10.77.0.1";

tl::unexpected<Error> fail_of(std::string_view call) {
  const ErrorCode code = errno == EPERM ? ErrorCode::Refused : ErrorCode::Io;
  return fail(code, fmt::format("{}: {}", call, error_text(errno)));
}

// Debian's is outside of some users' PATH.
std::string path_of_program(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/", "/usr/local/bin/"}) {
    std::string path = folder + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// Where the server's files are, in memory: a folder that has none of ours.
std::string files_folder() {
  std::error_code ignored;
  const std::string own = fs::read_symlink("/proc/self/exe", ignored).string();
  return own.rfind("/mnt/", 0) == 0 ? "/media" : "/mnt";
}

// Only one thread is there when it is called.
Expected<void> make_world() {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS) != 0) return fail_of("unshare");
  // What is mounted from here on is seen here alone.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return fail_of("mount");
  if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return fail_of("mount /proc");
  if (mount("tmpfs", files_folder().c_str(), "tmpfs", 0, "mode=700") != 0)
    return fail_of("mount tmpfs");
  return {};
}

Expected<void> ip(const std::string& commands) {
  const FinishedProgram done =
      CLEW_TRY(run_program({path_of_program("ip"), "-batch", "-"}, commands));
  if (done.succeeded) return {};
  return fail(ErrorCode::Io, "ip: " + done.messages.substr(0, done.messages.find('\n')));
}

void exec_words(const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& word : copies)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  (void)execv(argv[0], argv.data());
}

// What a new process does first. Signals are blocked in who begins it.
void become(const FileDescriptor& output) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  (void)sigemptyset(&none);
  (void)pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const FileDescriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  (void)dup2(nothing.get(), STDIN_FILENO);
  (void)dup2(output.get(), STDOUT_FILENO);
  (void)dup2(output.get(), STDERR_FILENO);
}

// Begins a process that runs `body`, which does not return.
Expected<TrialProgram> begin_process(const std::function<void()>& body) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_of("pipe");
  FileDescriptor output(ends[0]);
  const FileDescriptor its_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return fail_of("fork");
  if (pid > 0) return TrialProgram(pid, std::move(output));
  become(its_end);
  body();
  _exit(127);
}

// Children belong to `processes` while it is there, and then to our own again.
class ChildrenElsewhere {
 public:
  explicit ChildrenElsewhere(const FileDescriptor& processes)
      : own_(open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC)),
        is_there_(setns(processes.get(), CLONE_NEWPID) == 0) {}
  ChildrenElsewhere()
      : own_(open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC)),
        is_there_(unshare(CLONE_NEWPID) == 0) {}
  ~ChildrenElsewhere() { (void)setns(own_.get(), CLONE_NEWPID); }
  ChildrenElsewhere(const ChildrenElsewhere&) = delete;
  ChildrenElsewhere& operator=(const ChildrenElsewhere&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  FileDescriptor own_;
  bool is_there_;
};

// The first process of a machine: it holds the namespaces, and takes the ends of what is left
// there.
void be_machine(const std::string& name) {
  const bool is_made = unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS) == 0 &&
                       mount("proc", "/proc", "proc", 0, nullptr) == 0 &&
                       sethostname(name.data(), name.size()) == 0;
  if (!is_made) {
    fmt::print("{}\n", error_text(errno));
    (void)std::fflush(stdout);
    return;
  }
  (void)std::signal(SIGCHLD, SIG_IGN);
  (void)write(STDOUT_FILENO, "ready\n", 6);
  while (true)
    (void)pause();
}

// Waits for the world or for a signal, whichever comes first.
Expected<int> hold_world(pid_t world, const FileDescriptor& stop) {
  const FileDescriptor ended(static_cast<int>(syscall(SYS_pidfd_open, world, 0)));
  std::array<pollfd, 2> both{{{.fd = ended.get(), .events = POLLIN, .revents = 0},
                              {.fd = stop.get(), .events = POLLIN, .revents = 0}}};
  while (poll(both.data(), both.size(), -1) < 0 && errno == EINTR)
    continue;
  int signal = 0;
  if (both[1].revents != 0) {
    signalfd_siginfo information{};
    (void)read(stop.get(), &information, sizeof information);
    signal = static_cast<int>(information.ssi_signo);
    (void)kill(world, SIGKILL);
  }
  // It has ended only when all of its processes have.
  int status = 0;
  while (waitpid(world, &status, 0) < 0) {
    if (errno != EINTR) return fail_of("waitpid");
  }
  if (signal != 0) return 128 + signal;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Expected<void> check_trial() {
  if (geteuid() != 0) {
    return fail(ErrorCode::Refused,
                "a cluster for trying it needs root, for the namespaces of its machines");
  }
  struct Needed {
    const char* program;
    const char* package;
  };
  for (const Needed& needed : {Needed{"nats-server", "nats-server"}, Needed{"ip", "iproute2"},
                               Needed{"perl", "perl-base"}}) {
    if (!path_of_program(needed.program).empty()) continue;
    return fail(ErrorCode::NotFound,
                fmt::format("there is no program '{}', which this needs; Debian's package '{}' has "
                            "it",
                            needed.program, needed.package));
  }
  return {};
}

Expected<int> in_trial_world(const std::function<int()>& body) {
  const FileDescriptor stop = CLEW_TRY(signals_as_descriptor(ReaderGone::GoesOn));
  std::array<int, 2> held{};  // Its end is ours.
  if (pipe2(held.data(), O_CLOEXEC) != 0) return fail_of("pipe");
  const FileDescriptor holder_gone(held[0]);
  FileDescriptor holder(held[1]);
  if (unshare(CLONE_NEWPID) != 0) return fail_of("unshare");
  const pid_t world = fork();
  if (world < 0) return fail_of("fork");
  if (world > 0) return hold_world(world, stop);
  holder.reset();
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd gone{.fd = holder_gone.get(), .events = POLLIN, .revents = 0};
  if (poll(&gone, 1, 0) != 0) _exit(1);
  // Ctrl-C is for who holds it.
  (void)setsid();
  const Expected<void> made = make_world();
  const int status = made ? body() : report(made.error());
  (void)std::fflush(stdout);
  _exit(status);
}

// --- TrialProgram --------------------------------------------------------------------------------

TrialProgram::TrialProgram(TrialProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      pending_(std::move(other.pending_)) {}

TrialProgram::~TrialProgram() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  (void)wait();
}

std::optional<std::string> TrialProgram::line(int64_t until_ns) {
  while (true) {
    if (const size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    const int64_t left_ms = (until_ns - clock_ns(CLOCK_MONOTONIC)) / 1'000'000;
    pollfd one{.fd = output_.get(), .events = POLLIN, .revents = 0};
    if (left_ms <= 0 || poll(&one, 1, static_cast<int>(left_ms)) <= 0) return std::nullopt;
    std::array<char, 4096> some{};
    const ssize_t size = ::read(output_.get(), some.data(), some.size());
    if (size <= 0) return std::nullopt;
    pending_.append(some.data(), static_cast<size_t>(size));
  }
}

Expected<void> TrialProgram::wait_for(const std::string& what, int64_t until_ns) {
  std::string last = "nothing";
  while (const auto said = line(until_ns)) {
    if (said->find(what) != std::string::npos) return {};
    last = *said;
  }
  return fail(ErrorCode::Io, fmt::format("it did not say '{}', but: {}", what, last));
}

void TrialProgram::signal(int number) const {
  if (pid_ > 0) (void)kill(pid_, number);
}

int TrialProgram::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR)
    continue;
  pid_ = -1;
  return status;
}

// --- TrialMachine --------------------------------------------------------------------------------

TrialMachine::TrialMachine(int number) : number_(number), name_(fmt::format("n{}", number)) {}

Expected<std::unique_ptr<TrialMachine>> TrialMachine::begin(int number) {
  auto made = std::make_unique<TrialMachine>(number);
  {
    const ChildrenElsewhere elsewhere;
    if (!elsewhere.is_there()) return fail_of("unshare");
    made->first_.emplace(CLEW_TRY(begin_process([&made] { be_machine(made->name_); })));
  }
  CLEW_TRY(made->first_->wait_for("ready", clock_ns(CLOCK_MONOTONIC) + kBeginNs));
  const auto namespace_of = [&made](const char* kind) {
    return FileDescriptor(open(fmt::format("/proc/{}/ns/{}", made->first_->pid(), kind).c_str(),
                               O_RDONLY | O_CLOEXEC));
  };
  made->processes_ = namespace_of("pid");
  made->network_ = namespace_of("net");
  made->mounts_ = namespace_of("mnt");
  made->names_ = namespace_of("uts");
  CLEW_TRY(made->lay_cable());
  return made;
}

Expected<void> TrialMachine::enter_for(const std::function<Expected<void>()>& body) const {
  const FileDescriptor own(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (setns(network_.get(), CLONE_NEWNET) != 0) return fail_of("setns");
  Expected<void> done = body();
  if (setns(own.get(), CLONE_NEWNET) != 0) return fail_of("setns");
  return done;
}

Expected<void> TrialMachine::lay_cable() const {
  CLEW_TRY(
      ip(fmt::format("link add {0} type veth peer name eth0 netns {1}\n"
                     "addr add 10.77.{2}.1/24 dev {0}\n"
                     "link set {0} up\n",
                     name_, first_->pid(), number_)));
  return enter_for([this] {
    return ip(
        fmt::format("link set lo up\n"
                    "addr add 10.77.{0}.2/24 dev eth0\n"
                    "link set eth0 up\n"
                    "route add default via 10.77.{0}.1\n",
                    number_));
  });
}

Expected<void> TrialMachine::plug(bool is_in) const {
  return ip(fmt::format("link set {} {}\n", name_, is_in ? "up" : "down"));
}

Expected<TrialProgram> TrialMachine::start(const std::vector<std::string>& words) const {
  const ChildrenElsewhere elsewhere(processes_);
  if (!elsewhere.is_there()) return fail_of("setns");
  return begin_process([this, &words] {
    const bool is_there = setns(network_.get(), CLONE_NEWNET) == 0 &&
                          setns(names_.get(), CLONE_NEWUTS) == 0 &&
                          setns(mounts_.get(), CLONE_NEWNS) == 0;
    if (is_there) exec_words(words);
  });
}

// --- the server ----------------------------------------------------------------------------------

std::string trial_url() {
  return fmt::format("nats://{}:4222", kAddress);
}

Expected<TrialProgram> start_here(const std::vector<std::string>& words) {
  return begin_process([&words] { exec_words(words); });
}

Expected<TrialProgram> start_trial_server() {
  CLEW_TRY(ip(fmt::format("link set lo up\naddr add {}/32 dev lo\n", kAddress)));
  const std::string folder = files_folder();
  const std::string configuration = folder + "/server.conf";
  std::ofstream(configuration) << fmt::format(
      "listen: {}:4222\njetstream {{ store_dir: {}/store }}\n", kAddress, folder);
  TrialProgram server = CLEW_TRY(start_here({path_of_program("nats-server"), "-c", configuration}));
  CLEW_TRY(server.wait_for("Server is ready", clock_ns(CLOCK_MONOTONIC) + kBeginNs));
  return server;
}

}  // namespace clew::cmd
