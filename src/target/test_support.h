// SPDX-License-Identifier: Apache-2.0
// Words for the tests of target/: fixtures, temporary directories, other tools' answers, children.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace clew::target::test {

std::string fixture(std::string_view name);  // Path of a built fixture.
bool fixture_exists(std::string_view name);
std::string fixture_source(std::string_view name);  // Path of its source.

// Number of the line in a fixture's source that holds "MARK `mark`"; 0 when none does.
uint32_t marked_line(std::string_view source, std::string_view mark);

// Output of a shell command; the test fails when the command does.
std::string run(const std::string& command);
std::vector<std::string> lines_of(const std::string& text);

std::vector<uint8_t> read_file(const std::string& path);
void write_file(const std::string& path, const std::vector<uint8_t>& bytes);

// Removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const;

 private:
  std::string path_;
};

// A program that says "ready" and waits for the end of its input. Killed at the end.
class Child {
 public:
  explicit Child(const std::vector<std::string>& arguments, const std::string& program = "");
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  FileDescriptor input_;
};

}  // namespace clew::target::test
