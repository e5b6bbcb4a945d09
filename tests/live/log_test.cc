// SPDX-License-Identifier: Apache-2.0
// What -v and CLEW_LOG say of a real session: the steps in their order, and nothing where the
// answer is.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Each part is in the text behind the one before.
void expect_in_order(const std::string& text, const std::vector<std::string>& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    const size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << "no '" << part << "' after its predecessor in:\n"
                                        << text;
    at = found + part.size();
  }
}

// Every line that the log has is "0.012 s  …".
void expect_lines_with_times(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    EXPECT_THAT(line, testing::MatchesRegex("[0-9]+\\.[0-9][0-9][0-9] s  .*"));
}

class LogPlace {
 public:
  LogPlace() {
    std::string name = testing::TempDir() + "clew-log-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LogPlace() {
    (void)unlink(path().c_str());
    (void)rmdir(folder_.c_str());
  }
  [[nodiscard]] std::string path() const { return folder_ + "/log"; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string variable() const { return "CLEW_LOG=" + path(); }

 private:
  std::string folder_;
};

// What is done to the process in a session that answers by itself.
std::vector<std::string> steps_of(pid_t pid) {
  const std::string process = fmt::format("pid {}  ", pid);
  return {process + "is sites",
          process + "the query has 1 sites",
          process + "planned 1 windows",
          "compiled the query",
          process + "is locked against other sessions",
          process + "stopped 1 threads to map an arena",
          process + "has session 0",
          process + "verified 1 bodies",
          process + "stopped 1 threads to write jumps",
          process + "wrote the jumps of 1 windows for 1 probes",
          "the session begins",
          "the session ends",
          process + "stopped 1 threads to take out the jumps",
          process + "restored the text of 1 sites",
          process + "compared the text with its files: 0 jumps",
          process + "is left: the text is restored",
          "answered"};
}

std::vector<std::string> query_of(pid_t pid) {
  return {
      CLEW_COMMAND,        "run",   "-p",
      std::to_string(pid), "--for", "50ms",
      "--format",          "csv",   "from e in entry(\"sites!rip_call_target\") select count()"};
}

Child::End run_with(std::vector<std::string> arguments, const std::vector<std::string>& more,
                    const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin() + 2, more.begin(), more.end());
  return Child({.arguments = arguments, .environment = environment}).wait_for_end();
}

TEST(Log, HasTheStepsOfASessionInTheirOrder) {
  Victim victim("sites");
  const Child::End quiet = run_with(query_of(victim.pid()), {"-q"});
  const Child::End end = run_with(query_of(victim.pid()), {"-q", "-v"});
  ASSERT_EQ(end.status, 0) << end.error;
  EXPECT_EQ(end.output, quiet.output);
  EXPECT_THAT(quiet.error, Not(HasSubstr(" s  pid ")));
  expect_in_order(end.error, steps_of(victim.pid()));
  EXPECT_THAT(end.error, Not(HasSubstr("arena: low block")));
}

TEST(Log, HasSitesMappingsAndFilesInDetail) {
  Victim victim("sites");
  const Child::End end = run_with(query_of(victim.pid()), {"-q", "-vv"});
  ASSERT_EQ(end.status, 0) << end.error;
  expect_in_order(end.error, {"read the symbols of ", "arena: low block at ",
                              "arena: code extent at ", ": jump over ", "is unlocked"});
}

TEST(Log, GoesToTheEndOfAFileWithNoWordOnTheTerminal) {
  const LogPlace place;
  Victim victim("sites");
  const Child::End quiet = run_with(query_of(victim.pid()), {"-q"});
  for (int i = 0; i < 2; ++i) {
    const Child::End end = run_with(query_of(victim.pid()), {"-q"}, {place.variable()});
    ASSERT_EQ(end.status, 0) << end.error;
    EXPECT_EQ(end.output, quiet.output);
    EXPECT_EQ(end.error, quiet.error);
  }
  const std::string log = read_file(place.path());
  std::vector<std::string> twice = steps_of(victim.pid());
  const std::vector<std::string> once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  expect_in_order(log, twice);
  expect_lines_with_times(log);
}

TEST(Log, IsOfEveryVerb) {
  const LogPlace place;
  Victim victim("sites");
  const std::string pid = std::to_string(victim.pid());
  const std::string process = fmt::format("pid {}  ", pid);
  const auto said = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {CLEW_COMMAND};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Child({.arguments = all}).wait_for_end().error;
  };
  EXPECT_THAT(said({"doctor", "-v", "--stop", "-p", pid}), HasSubstr(process + "stopped "));
  EXPECT_THAT(said({"list", "-v", "-p", pid, "sites!rip_call_target"}),
              HasSubstr(process + "is sites"));
  EXPECT_THAT(said({"ps", "-v"}), HasSubstr("looked at all processes"));
  EXPECT_THAT(said({"detach", "-v", pid}), HasSubstr(process + "is cleaned up"));
  EXPECT_THAT(
      said({"explain", "-v", "-p", pid, "from e in entry(\"rip_call_target\") select count()"}),
      HasSubstr("compiled the query"));
}

TEST(Log, IsWrittenByScriptsToo) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  const LogPlace place;
  Victim victim("sites");
  const std::string pid = std::to_string(victim.pid());
  const Child::End end =
      Child({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", pid, "-n",
                           "pid$target:sites:rip_call_target:entry { } BEGIN { exit(0); }"},
             .environment = {place.variable()}})
          .wait_for_end();
  ASSERT_EQ(end.status, 0) << end.error;
  const std::string process = fmt::format("pid {}  ", pid);
  const std::string log = read_file(place.path());
  expect_in_order(log, {process + "stopped 1 threads to write jumps",
                        process + "stopped 1 threads to take out the jumps",
                        process + "is left: the text is restored"});
  EXPECT_THAT(log, HasSubstr("into the kernel"));
}

TEST(Log, ThatCannotBeOpenedIsAnErrorBeforeAnythingIsDone) {
  Victim victim("sites");
  const std::string path = testing::TempDir() + "no-such-folder/log";
  const Child::End end = run_with(query_of(victim.pid()), {"-q"}, {"CLEW_LOG=" + path});
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(end.error, fmt::format("clew: error: CLEW_LOG: {}: No such file or directory\n", path));
  EXPECT_THAT(end.output, IsEmpty());
}

// A copy that belongs to root and runs as root whoever starts it.
TEST(Log, IsNotWrittenForACallerWithFewerRights) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: a set-user-ID program needs root";
  const LogPlace place;
  struct statvfs mount = {};
  ASSERT_EQ(statvfs(place.folder().c_str(), &mount), 0);
  if ((mount.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << "NOT TESTED: " << place.folder();
  const std::string copy = place.folder() + "/clew";
  std::filesystem::copy_file(CLEW_COMMAND, copy);
  ASSERT_EQ(chmod(place.folder().c_str(), 0755), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  const Child::End end = Child({.arguments = {copy, "ps"},
                                .environment = {place.variable()},
                                .folder = "/",
                                .as_nobody = true})
                             .wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_FALSE(std::filesystem::exists(place.path()));
  (void)unlink(copy.c_str());
}

}  // namespace
}  // namespace clew::live
