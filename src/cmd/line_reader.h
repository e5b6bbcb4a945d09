// SPDX-License-Identifier: Apache-2.0
// Lines of commands from standard input, a terminal or not. At a terminal there is a prompt, and
// Ctrl-C drops the line; elsewhere it ends the program, as for any that reads a pipe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::cmd {

class LineReader {
 public:
  // Errors: Io.
  static Expected<LineReader> open(std::string_view prompt);

  // Without the end of line. Nothing: there are no more. Errors: Io; Limit when a line is longer
  // than kLineBytesMax.
  Expected<std::optional<std::string>> next();

 private:
  explicit LineReader(std::string_view prompt) : prompt_(prompt) {}
  void show_prompt() const;
  Expected<bool> wait();
  Expected<bool> read_more();

  static constexpr size_t kLineBytesMax = 1 << 16;

  std::string_view prompt_;
  FileDescriptor interrupts_;  // Invalid: no terminal.
  std::string read_;
  bool is_ended_ = false;
};

}  // namespace clew::cmd
