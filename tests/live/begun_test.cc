// SPDX-License-Identifier: Apache-2.0
// Programs that followed processes begin by exec.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"

namespace clew::live {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kByProcess =
    "from e in entry(\"begun!begun_work\") group by e.pid, e.procName "
    "select new { process = e.pid, name = e.procName, calls = count() } orderby calls";

class Begun : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0)
      GTEST_SKIP() << "NOT TESTED: the kernel tells of others' programs root only";
  }

  // `script` is a shell's; its BEGUN is the victim.
  static Report follow(std::string script, const std::string& query = kByProcess) {
    const std::string word = "BEGUN";
    for (size_t at = script.find(word); at != std::string::npos; at = script.find(word, at))
      script.replace(at, word.size(), victim_path("begun"));
    return run_clew({"run", "--json", "--follow", "--allow-missing", "-c",
                     fmt::format("sh -c '{}'", script), query});
  }

  static std::vector<uint64_t> calls_of(const Report& report) {
    std::vector<uint64_t> calls;
    for (const nlohmann::json& row : report.rows) {
      EXPECT_EQ(row.at("name"), "begun");
      calls.push_back(row.at("calls").get<uint64_t>());
    }
    return calls;
  }
};

TEST_F(Begun, AProgramThatAChildBeginsIsTraced) {
  const Report report = follow("BEGUN 100 && true");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls_of(report), std::vector<uint64_t>{100});
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("1 program that processes began"));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
}

TEST_F(Begun, AProgramThatTheTracedProcessItselfBeginsIsTraced) {
  const Report report = follow("exec BEGUN 50");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls_of(report), std::vector<uint64_t>{50});
  EXPECT_THAT(report.summary.at("lost").dump(), Not(HasSubstr("runs another program")));
}

TEST_F(Begun, ChainsAndSeveralAtOnceAreTraced) {
  const Report report = follow(
      "BEGUN 1 & BEGUN 2 & BEGUN 3 & sh -c \"sh -c \\\"BEGUN 4; true\\\"; BEGUN 5\" & wait; "
      "sh -c \"exec BEGUN 6\"");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(calls_of(report), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6})) << report.error;
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("6 programs that processes began"));
}

// Those that end before anybody looks are counted, if their names could be meant.
TEST_F(Begun, ProgramsThatMatchNothingAreNoLoss) {
  const Report report = follow("true; ls > /dev/null; sh -c \"true; true\"; true");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_TRUE(report.rows.empty());
  EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
}

TEST_F(Begun, ProgramsThatEndAtOnceAreToldOrCounted) {
  const Report report = follow("for i in 1 2 3 4 5 6 7 8 9 10; do BEGUN 1 --; done; true",
                               "from e in entry(\"begun!begun_work\") select calls = count()");
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_THAT(report.summary.at("lost").dump(), HasSubstr("that processes began by exec"));
  EXPECT_EQ(report.summary.at("refused").dump(), "[]");
}

TEST_F(Begun, AProgramThatHasNotLoadedAsTheSessionEndsIsTold) {
  const Report report =
      follow("exec BEGUN held", "from e in entry(\"libc.so.6!fork\") select calls = count()");
  ASSERT_EQ(report.status, 0) << report.error;
  int programs = 0;  // Two, whatever became of them.
  for (const auto& sentence : report.summary.at("lost")) {
    const std::string text = sentence.get<std::string>();
    if (text.find("that processes began by exec") != std::string::npos) programs += std::stoi(text);
  }
  EXPECT_EQ(programs, 2) << report.summary;
}

}  // namespace
}  // namespace clew::live
