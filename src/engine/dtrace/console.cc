// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/console.h"

#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::engine {

DtraceConsole::~DtraceConsole() {
  flush();
  if (file_ != first_) (void)std::fclose(file_);
  if (first_ != stdout) (void)std::fclose(first_);
}

Expected<void> DtraceConsole::open(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    return fail(ErrorCode::Io, fmt::format("failed to open {}: {}", path, error_text(errno)));
  }
  first_ = file;
  file_ = file;
  return {};
}

void DtraceConsole::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) note_failure();
}

// The first one says why.
void DtraceConsole::note_failure() {
  if (failure_ == 0) failure_ = errno;
}

void DtraceConsole::message(std::string_view text) {
  lines(fmt::format("dtrace: {}\n", text));
}

void DtraceConsole::lines(std::string_view text) {
  if (text.empty()) return;
  flush();
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void DtraceConsole::flush() {
  if (std::fflush(file_) != 0) note_failure();
}

void DtraceConsole::reopen(const std::string& path) {
  flush();
  std::FILE* next = first_;
  if (!path.empty()) next = std::fopen(path.c_str(), "we");
  if (next == nullptr) {
    return message(fmt::format("failed to open {}: {}", path, error_text(errno)));
  }
  if (file_ != first_) (void)std::fclose(file_);
  file_ = next;
}

void DtraceConsole::truncate() {
  flush();
  if (ftruncate(fileno(file_), 0) == 0) std::rewind(file_);
}

}  // namespace clew::engine
