// SPDX-License-Identifier: Apache-2.0
// Forked children that write at random into slots, tables, records and windows that they share with
// their parent, while its accessors run there: the program is as without Clew, and the tracer ends
// with an answer, which may be wrong.
#include <csignal>

#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr uint64_t kSpoilerRounds = 200'000;
constexpr uint64_t kSpoilerTurns = 3;

void expect_same_result(Victim& victim) {
  static const uint64_t kExpected = untraced_result("spoilers", kSpoilerRounds);
  for (uint64_t turn = 0; turn < kSpoilerTurns; ++turn)
    EXPECT_EQ(victim.run(kSpoilerRounds), kExpected);
}

class SpoilersOfQueries : public testing::TestWithParam<const char*> {};

TEST_P(SpoilersOfQueries, HarmNeitherTheirParentNorTheTracer) {
  Victim victim("spoilers");
  Tracer tracer = Tracer::attach(victim.pid(), GetParam());
  victim.run(1000);
  EXPECT_GE(victim.ask("spoilers 2").at("mappings"), 1U);
  expect_same_result(victim);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_FALSE(report.summary.is_null());
  expect_same_result(victim);
  EXPECT_EQ(victim.ask("end_spoilers").at("ended"), 2U);
  // Nothing of it is left for the next one.
  Tracer next = Tracer::attach(victim.pid(), entries_of("spoilers!spoiled"));
  victim.run(1000);
  EXPECT_EQ(next.finish().calls().at("spoiled"), 1000U);
}

INSTANTIATE_TEST_SUITE_P(
    Spoilers, SpoilersOfQueries,
    testing::Values(
        "from e in entry(\"spoilers!spoiled\") group by e.arg0 select e.arg0, count()",
        "from e in entry(\"spoilers!spoiled\") group by str(e.arg1) "
        "select str(e.arg1), count()",
        "from e in return(\"spoilers!spoiled*\") group by e.entry.arg0 "
        "select e.entry.arg0, avg(e.elapsed)",
        "from e in return(\"spoilers!spoiled*\") select e.time, e.entry.arg0, e.retval"));

// The session's own arrays are not the children's; the windows of its clauses are.
TEST(SpoilersOfD, HarmNeitherTheirParentNorTheTracer) {
  if (geteuid() != 0) GTEST_SKIP() << "D needs root";
  const char* const script =
      "BEGIN { printf(\"armed\\n\"); }\n"
      "pid$target:spoilers:spoiled:entry { @s[copyinstr(arg1), substr(copyinstr(arg1), 2)] =\n"
      "  count(); @u[ustack()] = count(); @t = sum(strlen(strtok(copyinstr(arg1), \" \"))); }\n"
      "pid$target:spoilers:spoiled:entry { self->t = timestamp; x[arg0 & 7, tid] = vtimestamp; }\n"
      "pid$target:spoilers:spoiled:return /self->t/ { @q = quantize(timestamp - self->t);\n"
      "  self->t = 0; trace(arg1); }\n";
  Victim victim("spoilers");
  Child tracer({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", std::to_string(victim.pid()),
                              "-n", script}});
  ASSERT_EQ(tracer.read_line(), "armed");
  victim.run(1000);
  EXPECT_GE(victim.ask("spoilers 2").at("mappings"), 1U);
  expect_same_result(victim);
  tracer.signal(SIGINT);
  const Child::End end = tracer.wait_for_end();
  EXPECT_LT(end.status, 128) << end.error;
  expect_same_result(victim);
  EXPECT_EQ(victim.ask("end_spoilers").at("ended"), 2U);
}

}  // namespace
}  // namespace clew::live
