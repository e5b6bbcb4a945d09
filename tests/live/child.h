// SPDX-License-Identifier: Apache-2.0
// A program that a test runs: its pipes, and its end. Every wait has a deadline; none sleeps.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace clew::live {

inline constexpr std::chrono::seconds kPatience{60};

struct ChildOptions {
  std::vector<std::string> arguments = {};    // The program's path first; looked up in PATH.
  std::vector<std::string> environment = {};  // NAME=value, besides what the test has.
  std::string folder = "";                    // Where it runs; empty = where the test runs.
  bool as_nobody = false;                     // Give up root, for servers that refuse to be root.
};

class Child {
 public:
  explicit Child(const ChildOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // Ends it with SIGKILL when it still runs.

  [[nodiscard]] pid_t pid() const { return pid_; }
  void write_line(const std::string& line);
  void close_input() { input_.reset(); }
  // The next line of standard output or standard error without its end; nothing at its end of file.
  std::optional<std::string> read_line() { return read_line_of(output_); }
  std::optional<std::string> read_error_line() { return read_line_of(error_); }
  void signal(int number) const;
  // Reads all that is left of both outputs and waits for the end. The status is the exit status,
  // or 128 + the signal.
  struct End {
    int status = 0;
    std::string output;
    std::string error;
    bool by_signal = false;
  };
  End wait_for_end();
  [[nodiscard]] bool running() const;

 private:
  struct Stream {
    FileDescriptor fd;
    std::string pending;
    bool closed = false;
  };
  std::optional<std::string> read_line_of(Stream& stream);
  bool fill(Stream& stream);  // False at the end of file.
  void fill_either();

  pid_t pid_ = -1;
  FileDescriptor input_;
  Stream output_;
  Stream error_;
};

}  // namespace clew::live
