// SPDX-License-Identifier: Apache-2.0
// Calls that have entered and not returned when the session ends: they are counted beside the
// answer, and with `including open` they are in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

const std::string kBlocked = "from e in return(\"blocked!blocking_read\") ";

TEST(Open, ACallThatDoesNotReturnIsCountedBesideTheAnswer) {
  Victim victim("blocked");
  Tracer tracer = Tracer::attach(victim.pid(), kBlocked + "select count(), max(e.elapsed)");
  victim.ask("block");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.at(0).at("count"), 0) << "it has not returned";
  ASSERT_TRUE(report.summary.contains("open_calls")) << report.summary;
  EXPECT_EQ(report.summary.at("open_calls").at("count"), 1);
  EXPECT_GT(report.summary.at("open_calls").at("oldest_ns"), 0);
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST(Open, AnOpenCallIsARowWithWhatIsKnownOfItsEntry) {
  Victim victim("blocked");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 kBlocked +
                                     "where e.elapsed > 0ns && (int)e.entry.arg0 > 2 select e.pid, "
                                     "e.tid, e.function, e.caller, e.elapsed, e.time, "
                                     "(int)e.entry.arg0 as fd including open");
  victim.ask("block");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  const auto& row = report.rows.at(0);
  EXPECT_EQ(row.at("pid"), victim.pid());
  EXPECT_NE(row.at("tid"), victim.pid());
  EXPECT_EQ(row.at("function"), "blocking_read");
  EXPECT_THAT(row.at("caller").get<std::string>(), HasSubstr("wait_read"));
  EXPECT_GT(row.at("elapsed"), 0);
  EXPECT_LT(row.at("elapsed"), 600 * kSecond);
  EXPECT_GT(row.at("fd"), 2);
  EXPECT_EQ(report.summary.at("open_calls").at("count"), 1);
}

// One call has returned and one is open, for all of these sessions. Without elapsed and arguments
// nothing but the clause pairs calls and returns.
TEST(Open, OpenCallsAreInTheirGroupsBesideThoseThatReturned) {
  Victim victim("blocked");
  const auto attach = [&](const std::string& key) {
    const std::string by = key.empty() ? "" : "groupby " + key + " as key ";
    return Tracer::attach(victim.pid(), kBlocked + by + "select count() as calls including open");
  };
  std::vector<Tracer> tracers;
  for (const char* key : {"", "e.function", "(int)e.entry.arg0 > 2", "e.procName"})
    tracers.push_back(attach(key));
  tracers.push_back(Tracer::attach(victim.pid(), kBlocked + "select count() as calls, "
                                                            "max(e.elapsed), quantize(e.elapsed)"));
  victim.ask("block");
  victim.ask("wake");
  victim.ask("block");
  const Report without = tracers.back().finish();
  EXPECT_EQ(without.rows.at(0).at("calls"), 1);
  EXPECT_EQ(without.summary.at("open_calls").at("count"), 1) << without.summary;
  tracers.pop_back();
  for (Tracer& tracer : tracers) {
    const Report report = tracer.finish();
    ASSERT_EQ(report.status, 0) << report.error;
    ASSERT_EQ(report.rows.size(), 1U) << report.error;
    EXPECT_EQ(report.rows.at(0).at("calls"), 2) << report.rows.at(0);
    EXPECT_EQ(report.lost(), 0U) << report.summary;
  }
}

TEST(Open, SeveralProcessesGiveTheirOwn) {
  Victim first("blocked");
  Victim second("blocked");
  Tracer tracer = Tracer::attach(
      first.pid(), kBlocked + "groupby e.pid select e.pid, count() as calls including open",
      {"-p", std::to_string(second.pid())});
  first.ask("block");
  second.ask("block");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.size(), 2U) << report.error;
  EXPECT_EQ(report.summary.at("open_calls").at("count"), 2);
}

// What siglongjmp left behind in the table of records.
TEST(Open, ACallThatWasLeftByLongjmpIsNotOpen) {
  Victim victim("losing");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from e in return(\"losing!jumped_from\") where e.elapsed >= 0ns "
                                 "select count() as calls including open");
  victim.ask("jumps 1000");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_FALSE(report.summary.contains("open_calls")) << report.summary;
}

class OpenInKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: programs in the kernel need root";
  }

  Victim victim_{"blocked"};
};

// That the query filters out what has returned says nothing of what has not.
TEST_F(OpenInKernel, ASystemCallThatDoesNotReturnIsCountedBesideTheAnswer) {
  Tracer tracer =
      Tracer::attach(victim_.pid(),
                     "from e in syscall_return(\"read\") where e.entry.arg2 == 1 && e.retval > 7 "
                     "select count(), max(e.elapsed)");
  victim_.ask("block");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.rows.at(0).at("count"), 0);
  ASSERT_TRUE(report.summary.contains("open_calls")) << report.summary;
  EXPECT_GE(report.summary.at("open_calls").at("count"), 1);
  EXPECT_GT(report.summary.at("open_calls").at("oldest_ns"), 0);
}

TEST_F(OpenInKernel, AnOpenSystemCallIsARowWithWhatIsKnownOfItsEntry) {
  Tracer tracer = Tracer::attach(victim_.pid(),
                                 "from e in syscall_return(\"read\") where (int)e.entry.arg0 > 2 "
                                 "select e.pid, e.tid, e.comm, e.procName, e.function, e.elapsed, "
                                 "(int)e.entry.arg0 as fd including open");
  victim_.ask("block");
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  ASSERT_GE(report.rows.size(), 1U) << report.error;
  const auto& row = report.rows.back();
  EXPECT_EQ(row.at("pid"), victim_.pid());
  EXPECT_NE(row.at("tid"), victim_.pid());
  EXPECT_EQ(row.at("procName"), "blocked");
  EXPECT_EQ(row.at("comm"), "blocked");
  EXPECT_EQ(row.at("function"), "read");
  EXPECT_GT(row.at("elapsed"), 0);
  EXPECT_LT(row.at("elapsed"), 600 * kSecond);
  EXPECT_GT(row.at("fd"), 2);
}

// Counted in the kernel and by the tracer, with and without elapsed; others have returned.
TEST_F(OpenInKernel, OpenSystemCallsAreInTheirGroupsBesideThoseThatReturned) {
  const std::string source = "from e in syscall_return(\"read\") where (int)e.entry.arg0 > 2 ";
  std::vector<Tracer> tracers;
  for (const char* const by : {"", "groupby e.function ", "groupby e.comm ", "groupby e.pid "}) {
    tracers.push_back(
        Tracer::attach(victim_.pid(), source + by + "select count() as calls including open"));
  }
  tracers.push_back(Tracer::attach(
      victim_.pid(),
      source + "select count() as calls, max(e.elapsed), p99(e.elapsed) including open"));
  Tracer without =
      Tracer::attach(victim_.pid(), source + "select count() as calls, max(e.elapsed)");
  victim_.ask("block");
  victim_.ask("wake");
  victim_.ask("block");
  const int returned = without.finish().rows.at(0).at("calls").get<int>();
  EXPECT_GE(returned, 1);
  std::vector<int> calls;
  for (Tracer& tracer : tracers) {
    const Report report = tracer.finish();
    ASSERT_EQ(report.status, 0) << report.error;
    ASSERT_EQ(report.rows.size(), 1U) << report.error;
    calls.push_back(report.rows.at(0).at("calls").get<int>());
  }
  EXPECT_THAT(calls, testing::Each(returned + 1));
}

// The thread computes: nothing but the record could say that it is in a call.
TEST_F(OpenInKernel, ACallThatHasReturnedIsNotOpenWhateverTheFilterSays) {
  const Report report =
      run_clew({"run", "--json", "-c",
                "python3 -c 'import os, signal; signal.alarm(2); os.getppid()\nwhile True: pass'",
                "from e in syscall_return(\"getppid\") for 1s where e.retval < 0 "
                "select count(), max(e.elapsed)"});
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_FALSE(report.summary.contains("open_calls")) << report.summary;
}

TEST(Open, WhatAnOpenCallDoesNotHaveIsRefusedAtItsPlace) {
  Victim victim("blocked");
  const Report report = run_clew(
      {"run", "-p", std::to_string(victim.pid()), kBlocked + "select e.retval including open"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("an open call has no result yet"));
}

}  // namespace
}  // namespace clew::live
