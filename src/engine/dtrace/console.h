// SPDX-License-Identifier: Apache-2.0
// Where a script's output goes: stdout, -o's file, or what freopen() named; and messages, which
// come after all output before them. On a terminal a form feed begins a page that takes the place
// of the last one, as much of it as there is room for; the last one stays as a whole.
#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "output/row_sink.h"
#include "output/screen.h"

namespace clew::engine {

// What is drawn on a terminal.
class TerminalBytes final : public output::ByteSink {
 public:
  explicit TerminalBytes(std::FILE* file) : file_(file) {}
  void write(std::string_view bytes) override {
    (void)std::fwrite(bytes.data(), 1, bytes.size(), file_);
  }
  [[nodiscard]] bool failed() const override { return std::ferror(file_) != 0; }

 private:
  std::FILE* file_;
};

class DtraceConsole {
 public:
  DtraceConsole() = default;
  DtraceConsole(const DtraceConsole&) = delete;
  DtraceConsole& operator=(const DtraceConsole&) = delete;
  ~DtraceConsole();

  // -o: appends, unless what the file has from before goes.
  Expected<void> open(const std::string& path, bool truncates = false);
  void write(std::string_view text);
  // How long a reader may take nothing: then all that follows is lost, by ETIMEDOUT. Before all
  // output.
  void set_patience(std::chrono::nanoseconds patience) { patience_ = patience; }
  // A line without its end, to stderr behind "dtrace: ".
  void message(std::string_view text);
  // Whole lines, as they are.
  void lines(std::string_view text);
  void flush();
  void reopen(const std::string& path);  // Empty: the first output again.
  void truncate();
  // What a file has from before is gone; standard output stays as it is.
  void begin_anew() {
    if (file_ != stdout) truncate();
  }
  // Output is lost: the reader is gone (EPIPE), the disk is full, …; 0 as long as it is not.
  [[nodiscard]] int failure() const { return failure_; }

 private:
  void note_failure();
  [[nodiscard]] bool is_paged(std::string_view text) const;
  void draw_page();
  void show_page_whole();

  std::FILE* first_ = stdout;
  std::FILE* file_ = stdout;
  void flush_patiently();

  int failure_ = 0;
  std::optional<std::chrono::nanoseconds> patience_;
  std::string unwritten_;  // With it.
  std::string page_;       // Since the last form feed, if there was one.
  bool has_page_ = false;
  bool is_drawn_ = false;
  TerminalBytes terminal_{stdout};
  output::Screen screen_{terminal_};
};

// For sinks of rows.
class ConsoleBytes final : public output::ByteSink {
 public:
  explicit ConsoleBytes(DtraceConsole& console) : console_(console) {}
  void write(std::string_view bytes) override { console_.write(bytes); }
  void flush() override { console_.flush(); }
  [[nodiscard]] bool failed() const override { return console_.failure() != 0; }

 private:
  DtraceConsole& console_;
};

}  // namespace clew::engine
