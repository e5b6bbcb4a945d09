// SPDX-License-Identifier: Apache-2.0
// Every query of examples/ gives an answer about a server under load.
#include <algorithm>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

// What a redis-server that only serves may not come to: a busy one has often no call over 1 ms.
const std::set<std::string> kQuietFiles = {"opened_files.clew", "slow_calls.clew",
                                           "slow_commands.clew"};

TEST(Examples, EachAnswersAboutARedisServerUnderLoad) {
  ASSERT_TRUE(present("/usr/bin/redis-server"));
  const Redis redis;
  Child load = redis.endless_load("set,get,lpush,sadd");
  size_t count = 0;
  for (const auto& file : fs::recursive_directory_iterator(CLEW_EXAMPLES)) {
    if (file.path().extension() != ".clew") continue;
    SCOPED_TRACE(file.path());
    ++count;
    const Report report = run_clew({"run", file.path(), "-p", std::to_string(redis.pid()), "--yes",
                                    "--for", "300ms", "--json"});
    EXPECT_EQ(report.status, 0) << report.error;
    const bool quiet = kQuietFiles.contains(file.path().filename());
    EXPECT_TRUE(quiet || !report.rows.empty());
  }
  EXPECT_GT(count, 10U);
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
