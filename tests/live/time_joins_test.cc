// SPDX-License-Identifier: Apache-2.0
// Joins by time of live events, with keys of which the victims know what they are equal to.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

constexpr uint64_t kOfEachClient = 200;  // Requests of each of the three clients of `relay`.

// What the query says while the victim does what it is told. Nothing may be missing.
Report answer_of(Victim& victim, const std::string& query, const std::string& command,
                 const std::vector<std::string>& more = {}) {
  Tracer tracer = Tracer::attach(victim.pid(), query, more);
  victim.ask(command);
  Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0) << report.summary;
  return report;
}

// Each request once, by its number.
void expect_all_requests(const Report& report) {
  std::set<uint64_t> wanted;
  for (uint64_t client = 1; client <= 3; ++client) {
    for (uint64_t i = 0; i < kOfEachClient; ++i)
      wanted.insert(1'000'000 * client + i);
  }
  EXPECT_EQ(report.rows.size(), wanted.size());
  for (const json& row : report.rows)
    EXPECT_EQ(wanted.erase(row.at("request").get<uint64_t>()), 1) << row;
  EXPECT_TRUE(wanted.empty());
}

TEST(TimeJoined, HaveTheRequestsOfTwoServers) {
  Victim victim("relay");
  const Report report = answer_of(
      victim,
      "from f in entry(\"relay!front_request\") join b in entry(\"relay!back_request\") on b.arg0 "
      "equals f.arg0 within 30s after join a in entry(\"relay!front_answer\") on a.arg0 equals "
      "b.arg0 within 30s after select f.arg0 as request, b.time >= f.time && a.time >= b.time as "
      "ordered, b.tid == f.tid as alike, a.tid == f.tid as same",
      fmt::format("run {}", kOfEachClient));
  expect_all_requests(report);
  for (const json& row : report.rows) {
    EXPECT_EQ(row.at("ordered"), 1);
    EXPECT_EQ(row.at("alike"), 0);  // A thread for each connection, and one in front of them.
    EXPECT_EQ(row.at("same"), 1);
  }
}

// The second server is another process, of which nothing is known but the number of a request.
TEST(TimeJoined, HaveTheRequestsOfTwoProcesses) {
  Victim victim("relay");
  const Report report = answer_of(
      victim,
      "from f in entry(\"relay!front_request\") join b in entry(\"relay!back_request\") on b.arg0 "
      "equals f.arg0 within 30s after select f.arg0 as request, f.pid, b.pid as other",
      fmt::format("elsewhere {}", kOfEachClient), {"--follow"});
  expect_all_requests(report);
  for (const json& row : report.rows) {
    EXPECT_EQ(row.at("pid"), victim.pid());
    EXPECT_NE(row.at("other"), victim.pid());
  }
}

// Keys of each are those of the call before it, but for one.
TEST(TimeJoined, HaveNothingWhereTheyFindNothing) {
  Victim victim("keys");
  const Report report = answer_of(
      victim,
      "from k in entry(\"keys!take_key\") left join b in entry(\"keys!take_key\") on b.tid equals "
      "k.tid and b.arg0 + 1 equals k.arg0 within 30s before groupby b == null as alone "
      "select alone, count() as n, min(k.arg0) as least, sum(k.arg0 - b.arg0) as steps",
      "paced 5000");
  ASSERT_EQ(report.rows.size(), 2);
  for (const json& row : report.rows) {
    const bool is_alone = row.at("alone") == 1;
    EXPECT_EQ(row.at("n"), is_alone ? 1 : 4'999);
    EXPECT_EQ(row.at("least"), is_alone ? 0 : 1);
    EXPECT_EQ(row.at("steps"), is_alone ? 0 : 4'999);
  }
}

// Of many with one key, the call before each, and the first of all.
TEST(TimeJoined, ChooseTheLastAndTheFirst) {
  constexpr int kCalls = 5'000;
  Victim victim("keys");
  const Report report = answer_of(
      victim,
      "from k in entry(\"keys!take_key\") left join b in MostRecent(entry(\"keys!take_key\")) on "
      "b.tid "
      "equals k.tid within 30s before left join a in First(entry(\"keys!take_key\")) on a.tid "
      "equals "
      "b.tid within 30s before select k.arg0 as own, k.arg0 - b.arg0 as step, a.arg0 as first",
      fmt::format("paced {}", kCalls));
  ASSERT_EQ(report.rows.size(), kCalls);
  for (const json& row : report.rows) {
    const int own = row.at("own");
    EXPECT_EQ(row.at("step"), own == 0 ? json() : json(1)) << row;
    EXPECT_EQ(row.at("first"), own < 2 ? json() : json(0)) << row;
  }
}

// A call and its return have the same argument, and come within a moment.
TEST(TimeJoined, JoinACallWithItsReturn) {
  Victim victim("keys");
  const Report report = answer_of(
      victim,
      "return(\"keys!take_key\").Where(r => r.entry.arg0 % 2 == 0).Join(entry(\"keys!take_key\"), "
      "r => new { r.tid, key = r.entry.arg0 }, e => new { e.tid, e.arg0 }, 30s before, "
      "(r, e) => new { r, e }).GroupBy(x => x.e.arg0 & 1).Select(g => new { odd = g.Key, n = "
      "g.Count(), negative = g.Sum(x => x.r.time < x.e.time ? 1 : 0) })",
      "paced 5000");
  ASSERT_EQ(report.rows.size(), 1);
  EXPECT_EQ(report.rows[0].at("odd"), 0);
  EXPECT_EQ(report.rows[0].at("n"), 2'500);
  EXPECT_EQ(report.rows[0].at("negative"), 0);
}

// All come within the time, so pairs can be counted: so many of 40 and 40 in turn.
TEST(TimeJoined, JoinFunctionsWithSystemCalls) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  static constexpr uint64_t kCalls = 40;
  const auto pairs = [](const std::string& side) {
    Victim victim("calls");
    const Report report = answer_of(
        victim,
        "from f in entry(\"calls!take_parent\") join s in syscall(\"getppid\") on s.tid equals "
        "f.tid within 30s " +
            side + " groupby f.pid select count() as n",
        fmt::format("parents {}", kCalls));
    return report.rows.size() == 1 ? report.rows[0].at("n").get<uint64_t>() : 0;
  };
  EXPECT_EQ(pairs(""), kCalls * kCalls);
  EXPECT_EQ(pairs("after"), kCalls * (kCalls + 1) / 2);
  EXPECT_EQ(pairs("before"), kCalls * (kCalls - 1) / 2);
}

// Of the kernel alone.
TEST(TimeJoined, JoinSystemCallsWithTheirReturns) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  Victim victim("calls");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from r in syscall_return(\"getppid\") join s in syscall(\"getppid\") on s.tid equals r.tid "
      "within 30s before where s.pid == r.pid groupby r.procName select r.procName as name, "
      "count() as n");
  victim.ask("parents 40");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1);
  EXPECT_EQ(report.rows[0].at("n"), 40 * 41 / 2);
  EXPECT_EQ(report.rows[0].at("name"), "calls");
}

TEST(TimeJoined, JoinRowsOfNamedQueries) {
  Victim victim("relay");
  const Report report = answer_of(
      victim,
      "var pairs = from f in entry(\"relay!front_request\") join b in "
      "entry(\"relay!back_request\") on b.arg0 equals f.arg0 within 30s after select f.arg0, "
      "b.tid;"
      "from a in entry(\"relay!front_answer\") join p in pairs on p.arg0 equals a.arg0 within 30s "
      "before where p.tid != a.tid select a.arg0 as request",
      fmt::format("run {}", kOfEachClient));
  expect_all_requests(report);
}

std::vector<std::string> rows_in_order(const Report& report) {
  std::vector<std::string> rows(report.rows.size());
  std::transform(report.rows.begin(), report.rows.end(), rows.begin(),
                 [](const json& row) { return row.dump(); });
  std::sort(rows.begin(), rows.end());
  return rows;
}

// One with and one without a partner, by the hundredth of what is asked.
TEST(TimeJoined, SayTheSameFromAFile) {
  const std::string query =
      "from k in entry(\"keys!take_key\") left join b in entry(\"keys!take_key\") on b.arg0 >> 1 "
      "equals k.arg0 and b.comm equals k.comm within 20ms after select k.arg0, b.arg0 as other, "
      "b.time - k.time as later";
  const fs::path file = fs::temp_directory_path() / fmt::format("clew-time-joins-{}", getpid());
  Victim victim("keys");
  const Report live = answer_of(victim, query, "paced 6000", {"--spill", file.string()});
  const Report again = run_clew({"run", query, "--from", file.string(), "--json"});
  fs::remove(file);
  EXPECT_EQ(again.status, 0) << again.error;
  // 0 has itself beside it, and is not joined with that.
  EXPECT_GT(live.rows.size(), 6'000);
  EXPECT_LT(live.rows.size(), 12'000);
  EXPECT_TRUE(rows_in_order(live) == rows_in_order(again));
}

TEST(TimeJoined, SayWhatTheyLeaveOut) {
  Victim victim("keys");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from k in entry(\"keys!take_key\") join b in entry(\"keys!take_key\") on b.tid equals "
      "k.tid within 30s before groupby k.tid select count() as n");
  victim.ask("paced 3000");
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1);
  // Two calls can have one time, which is before both.
  constexpr uint64_t kWithout = 1'000 * 999 / 2 + 2'000 * 1'000;
  EXPECT_GE(report.rows[0].at("n"), kWithout);
  EXPECT_LT(report.rows[0].at("n"), kWithout + 1'000);
  EXPECT_GE(report.summary.at("dropped").at("join_partners"), 1'999);
  EXPECT_LE(report.summary.at("dropped").at("join_partners"), 2'001);
}

// A row that waits is given while the session goes on, though nothing happens any more.
TEST(TimeJoined, EndByThemselvesWithWhatHasWaited) {
  Victim victim("keys");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from k in entry(\"keys!take_key\") left join b in entry(\"keys!take_key\") on b.arg0 equals "
      "k.arg0 + 1000000 within 5ms after where b == null select k.arg0 take 3");
  victim.ask("paced 3");
  const Report report = tracer.wait();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.size(), 3);
}

TEST(TimeJoined, AreExplained) {
  Victim victim("keys");
  const Child::End end = clew(
      {"explain",
       "from k in entry(\"keys!take_key\") join r in return(\"keys!take_key\") on r.tid equals "
       "k.tid within 250ms after where r.retval > 3 select k.arg0",
       "-p", std::to_string(victim.pid())});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr("join all of r with r.tid equals e.tid, within 250ms after"));
  EXPECT_THAT(end.output, HasSubstr("hold e for 350ms and r for 100ms, 1000000 of each at most"));
  EXPECT_THAT(end.output, HasSubstr("probe    filter (uint64_t)r.retval > 3ul"));
}

TEST(TimeJoined, HaveNoPictureAndNoTuples) {
  const Report report =
      run_clew({"run",
                "from k in entry(\"k\") join b in entry(\"b\") on b.tid equals k.tid within 1s "
                "select k.tid",
                "-p", std::to_string(getpid()), "--graph", testing::TempDir() + "none.svg"});
  EXPECT_NE(report.status, 0);
  EXPECT_THAT(report.error, HasSubstr("only a query with joins by cause"));
}

}  // namespace
}  // namespace clew::live
