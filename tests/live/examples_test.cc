// SPDX-License-Identifier: Apache-2.0
// Every query of examples/ gives an answer about a server under load.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

// What a redis-server that only serves may not come to: a busy one has often no call over 1 ms.
const std::set<std::string> kQuietFiles = {
    "opened_files.clew", "slow_calls.clew",      "slow_commands.clew", "connections.clew",
    "failed_opens.clew", "deletions.clew",       "renames.clew",       "signals.clew",
    "page_faults.clew",  "forks.clew",           "new_programs.clew",  "exits.clew",
    "wakers.clew",       "migrations.clew",      "disk_requests.clew", "retransmits.clew",
    "tcp_states.clew",   "softirqs.clew",        "memory_maps.clew",   "fsyncs.clew",
    "environment.clew",  "big_allocations.clew", "failed_reads.clew"};

// Of a file's own command line, as its comment has it.
const std::string kDanger = "--allow-late-uprobe-danger";

std::string text_in(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Report example_answer(const fs::path& path, pid_t pid, const std::string& time) {
  std::vector<std::string> arguments = {"run",   path,    "-p", std::to_string(pid),
                                        "--yes", "--for", time, "--json"};
  if (text_in(path).find(kDanger) != std::string::npos) arguments.push_back(kDanger);
  return run_clew(arguments);
}

TEST(Examples, EachAnswersAboutARedisServerUnderLoad) {
  ASSERT_TRUE(present("/usr/bin/redis-server"));
  const Redis redis;
  Child load = redis.endless_load("set,get,lpush,sadd");
  size_t count = 0;
  for (const auto& file : fs::recursive_directory_iterator(CLEW_EXAMPLES)) {
    if (file.path().extension() != ".clew") continue;
    const bool is_of_kernel = file.path().parent_path().filename() == "kernel";
    if (is_of_kernel && geteuid() != 0) continue;  // The kernel is root's.
    SCOPED_TRACE(file.path());
    ++count;
    const bool quiet = kQuietFiles.contains(file.path().filename());
    Report report = example_answer(file.path(), redis.pid(), quiet ? "100ms" : "300ms");
    EXPECT_EQ(report.status, 0) << report.error;
    // A machine that is busy with others leaves a server no time.
    if (!quiet && report.rows.empty()) report = example_answer(file.path(), redis.pid(), "3s");
    EXPECT_TRUE(quiet || !report.rows.empty());
  }
  EXPECT_GT(count, geteuid() == 0 ? 45U : 10U);
  expect_text_equals_file(redis.pid());
  load.signal(SIGKILL);
  load.wait_for_end();
}

TEST(Examples, OpenedFilesAreListedForACommand) {
  const Report report = run_clew({"run", std::string(CLEW_EXAMPLES) + "/libc/opened_files.clew",
                                  "--json", "-c", "/bin/cat /dev/null"});
  EXPECT_EQ(report.status, 0) << report.error;
  const bool found = std::any_of(report.rows.begin(), report.rows.end(),
                                 [](const auto& row) { return row.at("path") == "/dev/null"; });
  EXPECT_TRUE(found) << report.error;
}

}  // namespace
}  // namespace clew::live
