// SPDX-License-Identifier: Apache-2.0
#include "target/test_support.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::target::test {

std::string fixture(std::string_view name) {
  return fmt::format("{}/{}", CLEW_TARGET_FIXTURES, name);
}

bool fixture_exists(std::string_view name) {
  return std::filesystem::exists(fixture(name));
}

std::string fixture_source(std::string_view name) {
  return fmt::format("{}/{}", CLEW_TARGET_FIXTURE_SOURCES, name);
}

uint32_t marked_line(std::string_view source, std::string_view mark) {
  std::ifstream file(fixture_source(source));
  std::string line;
  for (uint32_t number = 1; std::getline(file, line); ++number) {
    if (line.find(fmt::format("MARK {}", mark)) != std::string::npos) return number;
  }
  return 0;
}

std::string run(const std::string& command) {
  std::array<int, 2> output{};
  EXPECT_EQ(pipe2(output.data(), O_CLOEXEC), 0);
  FileDescriptor from_child(output[0]);
  FileDescriptor to_parent(output[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_parent.get(), STDOUT_FILENO);
  // The tests compare with pipelines of binutils and awk, which is what a shell is for.
  std::array<std::string, 3> words = {"sh", "-c", command};
  std::array<char*, 4> argv = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, "/bin/sh", &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  to_parent.reset();
  std::string text;
  std::array<char, 65536> buffer{};
  for (ssize_t count = 1; count > 0;) {
    count = read(from_child.get(), buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0) << command;
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good()) << path;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "clew-target-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::file(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

Child::Child(const std::vector<std::string>& arguments, const std::string& program) {
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  EXPECT_EQ(pipe2(input.data(), O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(output.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const std::string& path = program.empty() ? arguments[0] : program;
  EXPECT_EQ(posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ), 0) << path;
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  input_ = FileDescriptor(input[1]);
  const FileDescriptor from_child(output[0]);
  std::array<char, 16> line{};
  EXPECT_GT(read(from_child.get(), line.data(), line.size()), 0) << path << " is not ready";
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace clew::target::test
