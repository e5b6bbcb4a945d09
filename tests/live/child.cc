// SPDX-License-Identifier: Apache-2.0
#include "live/child.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace clew::live {
namespace {

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void become_nobody() {
  const passwd* nobody = getpwnam("nobody");
  if (getuid() != 0 || nobody == nullptr) return;
  if (setgroups(0, nullptr) != 0 || setgid(nobody->pw_gid) != 0 || setuid(nobody->pw_uid) != 0) {
    _exit(126);
  }
}

// Between fork and exec: nothing here allocates.
[[noreturn]] void become(const ChildOptions& options, char* const* arguments,
                         const std::array<int, 3>& streams, char* const* environment) {
  for (int i = 0; i < 3; ++i)
    dup2(streams[static_cast<size_t>(i)], i);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(125);
  if (options.as_nobody) become_nobody();
  execvpe(arguments[0], arguments, environment);
  _exit(127);
}

std::vector<std::string> merged_environment(const ChildOptions& options) {
  std::vector<std::string> all = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    all.emplace_back(*entry);
  return all;
}

void wait_readable(std::vector<pollfd> fds, const char* what) {
  const int limit = static_cast<int>(std::chrono::milliseconds(kPatience).count());
  if (poll(fds.data(), fds.size(), limit) <= 0) {
    throw std::runtime_error(std::string("nothing came for a minute from ") + what);
  }
}

}  // namespace

Child::Child(const ChildOptions& options) {
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = merged_environment(options);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const std::array<int, 3> streams = {input.read_end.get(), output.write_end.get(),
                                      error.write_end.get()};
  pid_ = fork();
  if (pid_ == 0) {
    become(options, argument_pointers.data(), streams, environment_pointers.data());
  }
  if (pid_ < 0) throw std::runtime_error("fork");
  input_ = std::move(input.write_end);
  output_.fd = std::move(output.read_end);
  error_.fd = std::move(error.read_end);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      error_(std::move(other.error_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::write_line(const std::string& line) {
  const std::string text = line + "\n";
  if (write(input_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("the program does not read its input");
  }
}

bool Child::fill(Stream& stream) {
  std::array<char, 4096> buffer{};
  const ssize_t got = read(stream.fd.get(), buffer.data(), buffer.size());
  if (got <= 0) {
    stream.closed = true;
    return false;
  }
  stream.pending.append(buffer.data(), static_cast<size_t>(got));
  return true;
}

std::optional<std::string> Child::read_line_of(Stream& stream) {
  for (;;) {
    const size_t end = stream.pending.find('\n');
    if (end != std::string::npos) {
      std::string line = stream.pending.substr(0, end);
      stream.pending.erase(0, end + 1);
      return line;
    }
    if (stream.closed) return std::nullopt;
    wait_readable({{.fd = stream.fd.get(), .events = POLLIN, .revents = 0}}, "a program");
    fill(stream);
  }
}

void Child::fill_either() {
  std::vector<pollfd> fds;
  for (const Stream* stream : {&output_, &error_}) {
    if (!stream->closed) fds.push_back({.fd = stream->fd.get(), .events = POLLIN, .revents = 0});
  }
  const int limit = static_cast<int>(std::chrono::milliseconds(kPatience).count());
  if (poll(fds.data(), fds.size(), limit) <= 0) {
    throw std::runtime_error("a program did not end within a minute");
  }
  for (const pollfd& ready : fds) {
    if (ready.revents != 0) fill(ready.fd == output_.fd.get() ? output_ : error_);
  }
}

void Child::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

Child::End Child::wait_for_end() {
  while (!output_.closed || !error_.closed)
    fill_either();
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, std::move(output_.pending), std::move(error_.pending), WIFSIGNALED(status)};
}

bool Child::running() const {
  siginfo_t info = {};
  return pid_ > 0 &&
         waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

}  // namespace clew::live
