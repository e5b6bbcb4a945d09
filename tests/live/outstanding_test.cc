// SPDX-License-Identifier: Apache-2.0
// What is outstanding in live processes that know it themselves: what a victim has leaked, by the
// function that did, and the descriptors that the kernel says are open.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "live/child.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kSmallBytes = 48;
constexpr uint64_t kGrownBytes = 5000;
constexpr uint64_t kTimes = 400;

// Nothing but ends of what is older than the session, or what calloc() has given by a jump.
void expect_whole(const Report& report) {
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_TRUE(report.summary.is_object()) << report.error;
  for (const char* const kind : {"missed", "dropped"}) {
    const json causes = report.summary.value(kind, json::object());
    for (const auto& [cause, count] : causes.items())
      EXPECT_TRUE(cause == "ended_unseen" || cause == "tail_call") << cause << " " << count;
  }
}

struct Leaked {
  uint64_t count = 0;
  uint64_t bytes = 0;
  bool operator==(const Leaked&) const = default;
};

// By the function of the victim that is the first of it in the stack.
std::map<std::string, Leaked> by_function(const Report& report) {
  std::map<std::string, Leaked> found;
  for (const json& row : report.rows) {
    std::string function = "elsewhere";
    for (const json& frame : row.at("ustack")) {
      const std::string text = frame.is_string() ? frame.get<std::string>() : frame.dump();
      for (const char* const name : {"leak_small", "leak_grown", "give_back", "churn"}) {
        if (function == "elsewhere" && text.find(name) != std::string::npos) function = name;
      }
    }
    found[function].count += row.at("count").get<uint64_t>();
    found[function].bytes += row.at("bytes").get<uint64_t>();
  }
  return found;
}

const char* const kLive =
    "from a in libc.live groupby a.ustack select a.ustack, count() as count, sum(a.size) as bytes, "
    "max(a.age) as oldest orderby bytes descending";

TEST(Outstanding, IsWhatAProgramHasLeakedByTheStackThatDid) {
  Victim victim("leaky");
  victim.ask("leak 100");  // Before anybody looks.
  Tracer tracer = Tracer::attach(victim.pid(), kLive);
  Numbers truth = victim.ask(fmt::format("leak {}", kTimes));
  victim.ask("churn");
  const Report report = tracer.finish();
  expect_whole(report);
  std::map<std::string, Leaked> found = by_function(report);
  EXPECT_EQ(found["leak_small"], (Leaked{truth["small"], truth["small"] * kSmallBytes}));
  EXPECT_EQ(found["leak_grown"], (Leaked{truth["grown"], truth["grown"] * kGrownBytes}));
  EXPECT_EQ(found["give_back"], Leaked{});
  EXPECT_EQ(found["churn"], Leaked{});
}

// Each interval says what is there at its end, and so does a file of events at its end.
TEST(Outstanding, IsAskedAtTheEndOfEachIntervalAndOfAFile) {
  Victim victim("leaky");
  const fs::path file = fs::temp_directory_path() / fmt::format("outstanding.{}", getpid());
  const std::string query =
      "from a in libc.live groupby a.size select a.size, count() as n, max(a.age) as oldest "
      "orderby a.size == 48";
  Tracer tracer =
      Tracer::attach(victim.pid(), query, {"--every", "200ms", "--spill", file.string()});
  Numbers truth = victim.ask(fmt::format("leak {}", kTimes));
  const Report report = tracer.finish();
  expect_whole(report);
  ASSERT_FALSE(report.rows.empty());
  EXPECT_EQ(report.rows.back().at("n"), truth["small"]);
  const Report again = run_clew({"run", "--json", "--from", file.string(), query});
  fs::remove(file);
  ASSERT_EQ(again.status, 0) << again.error;
  ASSERT_FALSE(again.rows.empty());
  EXPECT_EQ(again.rows.back().at("n"), truth["small"]);
}

TEST(Outstanding, SingleRowsAreTheOldestFirst) {
  Victim victim("leaky");
  Tracer tracer = Tracer::attach(
      victim.pid(), "from a in libc.live where a.size == 5000 select a.age, a.address take 20");
  victim.ask(fmt::format("leak {}", kTimes));
  const Report report = tracer.finish();
  expect_whole(report);
  ASSERT_EQ(report.rows.size(), 20U);
  std::set<json> addresses;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    EXPECT_GT(report.rows[i].at("age").get<int64_t>(), 0);
    EXPECT_LE(report.rows[i].at("age"), report.rows[i == 0 ? 0 : i - 1].at("age"));
    addresses.insert(report.rows[i].at("address"));
  }
  EXPECT_EQ(addresses.size(), 20U);
}

// As the kernel has it in /proc, before and afterwards.
std::map<int, std::string> descriptors_of(pid_t pid) {
  std::map<int, std::string> open;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid)))
    open[std::stoi(entry.path().filename())] = fs::read_symlink(entry.path());
  return open;
}

TEST(Outstanding, IsTheFilesThatAProgramHasLeftOpen) {
  if (geteuid() != 0) GTEST_SKIP() << "system calls are for root";
  Victim victim("leaky");
  const std::map<int, std::string> before = descriptors_of(victim.pid());
  Tracer tracer = Tracer::attach(
      victim.pid(), "from f in files.open select f.fd, f.path, f.function, f.ustack(4)");
  victim.ask("files 5");
  std::map<int, std::string> wanted = descriptors_of(victim.pid());
  const Report report = tracer.finish();
  expect_whole(report);
  for (const auto& [fd, path] : before)
    wanted.erase(fd);
  ASSERT_EQ(wanted.size(), 5U);
  std::map<int, std::string> found;
  for (const json& row : report.rows) {
    found[row.at("fd").get<int>()] = row.at("path").get<std::string>();
    EXPECT_EQ(row.at("function"), "openat");
  }
  EXPECT_EQ(found, wanted);
}

// A list that grows: each of its byte arrays is too large for Python's own pools.
TEST(Outstanding, IsWhatPythonKeeps) {
  Child python({.arguments = {"/usr/bin/python3", "-c",
                              "import sys\n"
                              "kept = []\n"
                              "print('ready', flush=True)\n"
                              "sys.stdin.readline()\n"
                              "for i in range(300):\n"
                              "  kept.append(bytearray(100000 + i))\n"
                              "  dropped = bytearray(50000)\n"
                              "print('end', flush=True)\n"
                              "sys.stdin.readline()\n"}});
  ASSERT_EQ(python.read_line(), "ready");
  Tracer tracer = Tracer::attach(python.pid(),
                                 "from a in libc.live where a.size >= 50000 groupby a.size >= "
                                 "100000 as kept select kept, count() as n, sum(a.size) as bytes");
  python.write_line("go");
  ASSERT_EQ(python.read_line(), "end");
  const Report report = tracer.finish();
  expect_whole(report);
  ASSERT_FALSE(report.rows.empty());
  uint64_t kept = 0;
  for (const json& row : report.rows) {
    if (row.at("kept") == 0) {
      EXPECT_LE(row.at("n"), 1);  // The one that the name still has.
      continue;
    }
    kept += row.at("n").get<uint64_t>();
    EXPECT_GE(row.at("bytes").get<uint64_t>(), uint64_t{300} * 100'000);
  }
  EXPECT_EQ(kept, 300U);
}

}  // namespace
}  // namespace clew::live
