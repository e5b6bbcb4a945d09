// SPDX-License-Identifier: Apache-2.0
#include "cmd/line_reader.h"

#include <array>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::cmd {

Expected<LineReader> LineReader::open(std::string_view prompt) {
  LineReader reader(prompt);
  if (isatty(STDIN_FILENO) != 1) return reader;
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGINT);
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0)
    return fail(ErrorCode::Io, fmt::format("pthread_sigmask: {}", error_text(error)));
  reader.interrupts_ = FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!reader.interrupts_.valid())
    return fail(ErrorCode::Io, fmt::format("signalfd: {}", error_text(errno)));
  return reader;
}

void LineReader::show_prompt() const {
  if (interrupts_.valid()) fmt::print("{}", prompt_);
  (void)std::fflush(stdout);
}

Expected<std::optional<std::string>> LineReader::next() {
  show_prompt();
  while (true) {
    const size_t end = read_.find('\n');
    if (end != std::string::npos || (is_ended_ && !read_.empty())) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end == std::string::npos ? end : end + 1);
      return line;
    }
    if (is_ended_) {
      if (interrupts_.valid()) fmt::print("\n");
      return std::nullopt;
    }
    if (read_.size() > kLineBytesMax)
      return fail(ErrorCode::Limit, fmt::format("a command of more than {} bytes", kLineBytesMax));
    if (!CLEW_TRY(wait())) {
      read_.clear();
      fmt::print("\n");
      show_prompt();
      continue;
    }
    is_ended_ = !CLEW_TRY(read_more());
  }
}

// True: there is something to read. False: Ctrl-C.
Expected<bool> LineReader::wait() {
  if (!interrupts_.valid()) return true;
  std::array<pollfd, 2> both = {{{STDIN_FILENO, POLLIN, 0}, {interrupts_.get(), POLLIN, 0}}};
  while (poll(both.data(), both.size(), -1) < 0) {
    if (errno != EINTR) return fail(ErrorCode::Io, fmt::format("poll: {}", error_text(errno)));
  }
  signalfd_siginfo signal{};
  return ::read(interrupts_.get(), &signal, sizeof(signal)) != sizeof(signal);
}

// False: the end.
Expected<bool> LineReader::read_more() {
  std::array<char, 4096> bytes{};
  ssize_t size = 0;
  do {
    size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0) return fail(ErrorCode::Io, fmt::format("standard input: {}", error_text(errno)));
  read_.append(bytes.data(), static_cast<size_t>(size));
  return size != 0;
}

}  // namespace clew::cmd
