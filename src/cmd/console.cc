// SPDX-License-Identifier: Apache-2.0
#include "cmd/console.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/log.h"
#include "cmd/verbs.h"

namespace clew::cmd {

namespace {

// fmt::print() throws where nobody reads any more, which is no reason to end.
void put(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace

Console::Console(bool quiet) : quiet_(quiet), is_terminal_(isatty(STDERR_FILENO) == 1) {}

Console::~Console() {
  erase();
}

void Console::erase() {
  if (line_shown_) put("\r\x1b[K");
  line_shown_ = false;
}

void Console::progress(std::string_view text) {
  // A log has lines of its own, which would be written over this one.
  if (quiet_ || !is_terminal_ || is_logged(LogLevel::Steps)) return;
  erase();
  if (text.empty()) return;
  put(fmt::format("clew: {} …", text));
  line_shown_ = true;
}

void Console::warning(std::string_view text) {
  erase();
  put(fmt::format("clew: warning: {}\n", text));
}

void Console::tell(std::string_view text) {
  erase();
  if (quiet_) return;
  put(fmt::format("clew: {}\n", text));
}

int report(const Error& error) {
  // A diagnostic begins with its own place and has the text below it.
  const bool has_place = error.message.find(": error: ") != std::string::npos;
  put(fmt::format("{}{}\n", has_place ? "" : "clew: error: ", error.message));
  return kExitError;
}

Expected<FileDescriptor> signals_as_descriptor(ReaderGone reader_gone) {
  sigset_t signals;
  (void)sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    (void)sigaddset(&signals, signal);
  }
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
    return fail(ErrorCode::Io, fmt::format("pthread_sigmask: {}", error_text(error)));
  }
  if (reader_gone == ReaderGone::GoesOn) (void)sigdelset(&signals, SIGPIPE);
  FileDescriptor descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.valid()) {
    return fail(ErrorCode::Io, fmt::format("signalfd: {}", error_text(errno)));
  }
  return descriptor;
}

}  // namespace clew::cmd
