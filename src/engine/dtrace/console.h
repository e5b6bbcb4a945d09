// SPDX-License-Identifier: Apache-2.0
// Where a script's output goes: stdout, -o's file, or what freopen() named; and messages, which
// come after all output before them.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"
#include "output/row_sink.h"

namespace clew::engine {

class DtraceConsole {
 public:
  DtraceConsole() = default;
  DtraceConsole(const DtraceConsole&) = delete;
  DtraceConsole& operator=(const DtraceConsole&) = delete;
  ~DtraceConsole();

  // -o: appends.
  Expected<void> open(const std::string& path);
  void write(std::string_view text);
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

  std::FILE* first_ = stdout;
  std::FILE* file_ = stdout;
  int failure_ = 0;
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
