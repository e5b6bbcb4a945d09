// SPDX-License-Identifier: Apache-2.0
// What the command says to wrong input: a clear message, the right exit status, and no process
// changed.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs a query on a victim that must be refused with these words, and leaves the victim as it was.
void expect_refused(Victim& victim, const std::string& query,
                    const testing::Matcher<std::string>& words) {
  const ProcessState before = ProcessState::of(victim.pid());
  const Report report = run_clew({"run", query, "-p", std::to_string(victim.pid()), "--json"});
  EXPECT_EQ(report.status, 1) << report.error;
  EXPECT_THAT(report.error, words);
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Command, AnUnknownFunctionIsAnsweredWithTheNearestName) {
  Victim victim("sites");
  expect_refused(victim, entries_of("sites!rip_laa"),
                 AllOf(HasSubstr("error:"), HasSubstr("rip_lea")));
}

TEST(Command, AnUnknownModuleIsAnsweredWithTheNearestName) {
  Victim victim("sites");
  expect_refused(victim, entries_of("sitez!rip_lea"),
                 AllOf(HasSubstr("error:"), HasSubstr("sites")));
}

TEST(Command, ASyntaxErrorIsShownWithItsPlace) {
  Victim victim("sites");
  expect_refused(victim, "from e in entry(\"sites!*\") selekt count()",
                 AllOf(HasSubstr("error:"), HasSubstr("^")));
}

TEST(Command, APidThatDoesNotExistIsAnError) {
  const Report report = run_clew({"run", entries_of("sites!*"), "-p", "4194303"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, AllOf(HasSubstr("error:"), HasSubstr("4194303")));
}

TEST(Command, AnExceptionSourceIsRefusedWhereNothingUnwinds) {
  Victim victim("sites");
  expect_refused(victim, count_by_function("exception(\"sites!*\")"), HasSubstr("unwinder"));
}

TEST(Command, AProgramThatUsesGsIsRefusedWithThatReason) {
  Victim victim("uses_gs");
  victim.ask("use_gs");
  const uint64_t result = victim.run(100);
  expect_refused(victim, entries_of("uses_gs!read_gs"), HasSubstr("gs"));
  EXPECT_EQ(victim.run(100), result);
}

TEST(Command, AStrangersProcessIsRefusedWithoutPermission) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  Victim victim("sites");
  Child child({.arguments = {CLEW_COMMAND, "run", entries_of("sites!*"), "-p",
                             std::to_string(victim.pid())},
               .folder = "/",
               .as_nobody = true});
  const Child::End end = child.wait_for_end();
  if (end.status == 127) GTEST_SKIP() << "the build folder is not readable by others";
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("error:"));
}

TEST(Command, WrongUseExitsWithTwo) {
  EXPECT_EQ(run_clew({"run"}).status, 2);
  EXPECT_EQ(run_clew({"run", "--no-such-option"}).status, 2);
  EXPECT_EQ(run_clew({"no-such-verb"}).status, 2);
}

TEST(Command, AQueryWithALimitEndsByItself) {
  Victim victim("sites");
  const Report report = run_clew({"run", entries_of("sites!rip_*"), "-p",
                                  std::to_string(victim.pid()), "--json", "--for", "50ms"});
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_FALSE(report.summary.is_null());
  expect_text_equals_file(victim.pid());
}

TEST(Command, TheSummaryNamesSitesAndTimes) {
  Victim victim("sites");
  const Report report = Tracer::attach(victim.pid(), entries_of("sites!*")).finish();
  for (const char* key :
       {"missed", "dropped", "lost", "refused", "sites", "attach_ms", "stopped_ms"}) {
    EXPECT_TRUE(report.summary.contains(key)) << key << " in " << report.summary;
  }
}

TEST(Command, ListNamesFunctionsOfAProcess) {
  Victim victim("sites");
  Child child(
      {.arguments = {CLEW_COMMAND, "list", "sites!rip_*", "-p", std::to_string(victim.pid())}});
  const Child::End end = child.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, AllOf(HasSubstr("rip_lea"), HasSubstr("rip_call_target")));
}

}  // namespace
}  // namespace clew::live
