// SPDX-License-Identifier: Apache-2.0
// What docs/from-*.md say to whoever comes from another tool: each line of Clew runs, about a
// redis-server under load. Their times are cut short.
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "live/child.h"
#include "live/server.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

// The lines of a page's blocks for a shell that call Clew, with those that go on.
std::vector<std::string> commands_of(const fs::path& page) {
  std::vector<std::string> commands;
  std::ifstream file(page);
  bool is_inside = false;
  bool is_ours = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      is_inside = line == "```sh";
      is_ours = false;
    } else if (is_inside && line.starts_with("clew ")) {
      commands.push_back(line);
      is_ours = true;
    } else if (is_inside && is_ours && line.starts_with(" ")) {
      commands.back() += "\n" + line;
    } else {
      is_ours = false;
    }
  }
  return commands;
}

std::string made_short(const std::string& command, pid_t pid) {
  std::string text = std::regex_replace(command, std::regex("--for [0-9]+m?s"), "--for 100ms");
  text = std::regex_replace(text, std::regex("tick-[0-9]+s"), "tick-100ms");
  return std::regex_replace(text, std::regex("\\bPID\\b"), std::to_string(pid));
}

// What a machine may lack, which is said in these words.
bool is_of_this_machine(const std::string& error) {
  return error.find("this kernel lets no program at its functions") != std::string::npos ||
         error.find("no process is called") != std::string::npos;
}

// Several at once, as most of the time is waited for.
constexpr size_t kAtOnce = 4;

void expect_each_line_runs(const std::string& page) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  ASSERT_TRUE(present("/usr/bin/redis-server"));
  const Redis redis;
  const Child load = redis.endless_load("set,get,lpush");
  const TemporaryFolder folder;
  const std::vector<std::string> commands = commands_of(fs::path(CLEW_EXAMPLES) / "../docs" / page);
  EXPECT_GT(commands.size(), 8);
  const std::string path = "PATH=" + fs::path(CLEW_COMMAND).parent_path().string() + ":$PATH\n";
  std::vector<Child> running;
  for (size_t i = 0; i < commands.size() + kAtOnce; ++i) {
    if (i < commands.size()) {
      running.emplace_back(
          ChildOptions{.arguments = {"/bin/sh", "-c", path + made_short(commands[i], redis.pid())},
                       .folder = folder.path()});
      running.back().close_input();
    }
    if (i < kAtOnce || i - kAtOnce >= commands.size()) continue;
    const Child::End end = running[i - kAtOnce].wait_for_end();
    EXPECT_TRUE(end.status == 0 || is_of_this_machine(end.error)) << commands[i - kAtOnce] << "\n"
                                                                  << end.error;
  }
}

TEST(Pages, RunWhatTheySayOfBpftrace) {
  expect_each_line_runs("from-bpftrace.md");
}
TEST(Pages, RunWhatTheySayOfPerf) {
  expect_each_line_runs("from-perf.md");
}
TEST(Pages, RunWhatTheySayOfStrace) {
  expect_each_line_runs("from-strace.md");
}
TEST(Pages, RunWhatTheySayOfGdb) {
  expect_each_line_runs("from-gdb.md");
}

}  // namespace
}  // namespace clew::live
