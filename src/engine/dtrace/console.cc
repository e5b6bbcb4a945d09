// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/console.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"
#include "output/sinks.h"

namespace clew::engine {
namespace {

constexpr size_t kUnwrittenBytesMax = size_t{64} << 10;
constexpr size_t kPageBytesMax = size_t{1} << 20;  // No window shows as much.

}  // namespace

DtraceConsole::~DtraceConsole() {
  if (has_page_) show_page_whole();
  flush();
  if (file_ != first_) (void)std::fclose(file_);
  if (first_ != stdout) (void)std::fclose(first_);
}

Expected<void> DtraceConsole::open(const std::string& path, bool truncates) {
  std::FILE* const file = std::fopen(path.c_str(), truncates ? "we" : "ae");
  if (file == nullptr) {
    return fail(ErrorCode::Io, fmt::format("failed to open {}: {}", path, error_text(errno)));
  }
  first_ = file;
  file_ = file;
  return {};
}

bool DtraceConsole::is_paged(std::string_view text) const {
  const bool begins_one = text.find('\f') != std::string_view::npos;
  return (has_page_ || begins_one) && file_ == stdout && isatty(STDOUT_FILENO) == 1;
}

void DtraceConsole::write(std::string_view text) {
  if (is_paged(text)) {
    const size_t begin = text.rfind('\f');
    if (begin != std::string_view::npos) page_.clear();
    has_page_ = true;
    is_drawn_ = false;
    const std::string_view more = text.substr(begin == std::string_view::npos ? 0 : begin + 1);
    page_ += more.substr(0, kPageBytesMax - std::min(kPageBytesMax, page_.size()));
    return;
  }
  if (patience_) {
    unwritten_ += text;
    if (unwritten_.size() >= kUnwrittenBytesMax) flush_patiently();
    return;
  }
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) note_failure();
}

// Behind what the file has taken before.
void DtraceConsole::flush_patiently() {
  const std::string text = std::exchange(unwritten_, {});
  if (text.empty() || failure_ != 0) return;
  failure_ = output::write_patiently(fileno(file_), text, *patience_);
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
  screen_.forget();  // The next page stands below.
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void DtraceConsole::draw_page() {
  if (!has_page_ || is_drawn_) return;
  screen_.draw(page_, output::size_of_terminal(STDOUT_FILENO));
  is_drawn_ = true;
}

// The last one stays, also what the window had no room for.
void DtraceConsole::show_page_whole() {
  screen_.erase(output::size_of_terminal(STDOUT_FILENO));
  terminal_.write(page_);
  is_drawn_ = true;
}

void DtraceConsole::flush() {
  draw_page();
  if (patience_) flush_patiently();
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
