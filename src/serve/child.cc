// SPDX-License-Identifier: Apache-2.0
#include "serve/child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::serve {
namespace {

constexpr const char* kOurselves = "/proc/self/exe";
constexpr int kExitCannotRun = 127;

tl::unexpected<Error> failed_call(const char* call) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", call, error_text(errno)));
}

struct Pipe {
  FileDescriptor reading;
  FileDescriptor writing;
};

Expected<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return failed_call("pipe2");
  Pipe made{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  if (fcntl(made.reading.get(), F_SETFL, O_NONBLOCK) != 0) return failed_call("fcntl");
  return made;
}

// It is in memory: no program waits for the other to read.
Expected<FileDescriptor> input_of(const std::string& text) {
  FileDescriptor file(memfd_create("clew-input", MFD_CLOEXEC));
  if (!file.valid()) return failed_call("memfd_create");
  const bool is_written =
      write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!is_written || lseek(file.get(), 0, SEEK_SET) != 0) return failed_call("write");
  return file;
}

// In the child, after fork(). PR_SET_PDEATHSIG is that of the thread which forked, and we have one.
// SIGTERM ends a session as SIGINT does, and is not a second SIGINT, which ends it at once. A group
// of its own, so that a terminal's Ctrl-C is not a first one.
[[noreturn]] void become(std::vector<char*>& words, pid_t parent,
                         const std::array<int, 3>& standard) {
  (void)setpgid(0, 0);
  (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  (void)sigemptyset(&none);
  (void)pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (getppid() != parent) _exit(kExitCannotRun);  // It was killed before we could ask.
  for (int i = 0; i < 3; ++i)
    (void)dup2(standard.at(static_cast<size_t>(i)), i);
  (void)execv(kOurselves, words.data());
  _exit(kExitCannotRun);
}

}  // namespace

Expected<Child> Child::start(const Command& command) {
  Pipe output = CLEW_TRY(make_pipe());
  Pipe messages = CLEW_TRY(make_pipe());
  const FileDescriptor input = CLEW_TRY(input_of(command.input));
  std::vector<std::string> words{"clew"};
  words.insert(words.end(), command.words.begin(), command.words.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  Child child;
  child.pid_ = fork();
  if (child.pid_ < 0) return failed_call("fork");
  if (child.pid_ == 0)
    become(pointers, parent, {input.get(), output.writing.get(), messages.writing.get()});
  child.gone = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.gone.valid()) {
    const int error = errno;
    child.stop();
    (void)child.status();
    return fail(ErrorCode::Io, fmt::format("pidfd_open: {}", error_text(error)));
  }
  child.output = std::move(output.reading);
  child.messages = std::move(messages.reading);
  child.is_session = command.is_session;
  return child;
}

void Child::stop() {
  if (!std::exchange(is_stopped_, true)) (void)kill(pid_, SIGINT);
}

std::string Child::status() {
  int status = 0;
  (void)waitpid(pid_, &status, 0);
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::to_string(WEXITSTATUS(status));
}

}  // namespace clew::serve
