// SPDX-License-Identifier: Apache-2.0
// What the log of sessions says of real ones: all verbs that touch something, by whom, and how it
// ended. Root's log has one place: as root, the suite has a /var/log of its own.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// In a mount namespace of our own, which our children share and which ends with us: /var/log is
// empty, and /etc a copy, so that there can be rules in it. The machine's own are as they were.
bool have_own_place() {
  if (geteuid() != 0) return true;
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (mount("tmpfs", "/var/log", "tmpfs", 0, nullptr) != 0) return false;
  const std::string copy = "/var/log/etc";
  if (Child({.arguments = {"cp", "-a", "/etc", copy}}).wait_for_end().status != 0) return false;
  return mount(copy.c_str(), "/etc", nullptr, MS_BIND, nullptr) == 0;
}

class Told : public testing::Test {
 protected:
  static void SetUpTestSuite() { has_place_ = have_own_place(); }
  void SetUp() override {
    if (!has_place_) GTEST_SKIP() << "needs a mount namespace of its own, or not to be root";
    std::string name = testing::TempDir() + "/clew-told-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top_ = name;
    folder_ = geteuid() == 0 ? "/var/log/clew" : top_ + "/sessions";
    std::filesystem::remove_all(folder_);
    ASSERT_EQ(setenv("CLEW_SESSIONS", (top_ + "/sessions").c_str(), 1), 0);
  }
  void TearDown() override {
    (void)unsetenv("CLEW_SESSIONS");
    if (has_place_ && geteuid() == 0) std::filesystem::remove_all("/etc/clew");
    if (!top_.empty()) std::filesystem::remove_all(top_);
  }

  static std::vector<json> log(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"log", "--json"});
    const Child::End end = clew(arguments);
    EXPECT_EQ(end.status, 0) << end.error;
    EXPECT_THAT(end.error, IsEmpty());
    std::vector<json> sessions;
    std::istringstream lines(end.output);
    for (std::string line; std::getline(lines, line);)
      sessions.push_back(json::parse(line));
    return sessions;
  }
  // The rules of the site, for root alone to write.
  static void set_rules(const std::string& text) {
    std::filesystem::create_directories("/etc/clew");
    ASSERT_EQ(chmod("/etc/clew", 0755), 0);
    std::ofstream("/etc/clew/clew.toml") << text;
    ASSERT_EQ(chmod("/etc/clew/clew.toml", 0644), 0);
  }
  static std::string status_of(const json& session) { return session.at("status"); }
  static pid_t first_pid(const json& session) { return session.at("processes").at(0).at("pid"); }

  static bool has_place_;
  std::string top_;
  std::string folder_;
};

bool Told::has_place_ = false;

const char* const kToldQuery = R"(from e in entry("sites!rip_lea") select count())";

TEST_F(Told, AQueryIsToldWithWhoAndWhatAndHowItEnded) {
  Victim victim("sites");
  Tracer tracer = Tracer::attach(victim.pid(), kToldQuery);
  std::vector<json> sessions = log();
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(status_of(sessions[0]), "running");
  EXPECT_EQ(sessions[0].at("clew_pid"), tracer.child().pid());
  (void)tracer.finish();
  sessions = log();
  ASSERT_THAT(sessions, SizeIs(1));
  const json& session = sessions[0];
  EXPECT_EQ(status_of(session), "stopped");
  EXPECT_EQ(session.at("verb"), "run");
  EXPECT_EQ(session.at("uid"), getuid());
  EXPECT_EQ(session.at("text"), kToldQuery);
  EXPECT_EQ(first_pid(session), victim.pid());
  EXPECT_EQ(session.at("processes").at(0).at("name"), "sites");
  EXPECT_EQ(session.at("rows"), 1);
  EXPECT_EQ(session.at("missed"), 0);
  EXPECT_GT(session.at("lasted_ns"), 0);
}

TEST_F(Told, NothingIsToldOfALookAlone) {
  Victim victim("sites");
  const std::string pid = std::to_string(victim.pid());
  EXPECT_EQ(clew({"list", "sites!*", "--sites", "-p", pid}).status, 0);
  EXPECT_EQ(clew({"explain", kToldQuery, "-p", pid}).status, 0);
  EXPECT_EQ(clew({"ps"}).status, 0);
  (void)clew({"doctor", "-p", pid});
  EXPECT_THAT(log(), IsEmpty());
}

TEST_F(Told, ARefusalIsToldWithItsReason) {
  const std::string query = "from e in entry(\"no_such\") select count()\n\x1b[2J";
  Victim victim("sites");
  EXPECT_NE(clew({"run", query, "-p", std::to_string(victim.pid())}).status, 0);
  const std::vector<json> sessions = log();
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(status_of(sessions[0]), "refused");
  EXPECT_EQ(sessions[0].at("text"), query);
  const std::string reason = sessions[0].at("reason");
  EXPECT_THAT(reason, HasSubstr(": error: "));
  EXPECT_THAT(reason, Not(HasSubstr("\n")));
  EXPECT_EQ(first_pid(sessions[0]), victim.pid());
  const Child::End shown = clew({"log"});
  EXPECT_THAT(shown.output, HasSubstr("select count()\\n\\x1b[2J"));
  EXPECT_THAT(shown.output, Not(HasSubstr("\x1b")));
}

TEST_F(Told, ATracerThatIsKilledIsNotedByWhoCleansUp) {
  Victim victim("sites");
  {
    Tracer tracer = Tracer::attach(victim.pid(), kToldQuery);
    tracer.child().signal(SIGKILL);
    (void)tracer.child().wait_for_end();
  }
  EXPECT_EQ(status_of(log().at(0)), "killed");
  EXPECT_EQ(clew({"detach", std::to_string(victim.pid())}).status, 0);
  const std::vector<json> sessions = log();
  ASSERT_THAT(sessions, SizeIs(2));
  EXPECT_EQ(status_of(sessions[0]), "killed");
  EXPECT_THAT(sessions[0].at("reason").get<std::string>(), HasSubstr("is gone"));
  EXPECT_EQ(sessions[1].at("verb"), "detach");
  EXPECT_EQ(first_pid(sessions[1]), victim.pid());
  EXPECT_EQ(status_of(sessions[1]), "ended");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/running"));
}

TEST_F(Told, SessionsAreFoundByProcessUserTimeAndNumber) {
  Victim first("sites");
  Victim second("sites");
  const auto count = [](const Victim& victim) {
    const std::string pid = std::to_string(victim.pid());
    EXPECT_EQ(clew({"run", kToldQuery, "--for", "1ms", "-p", pid}).status, 0);
  };
  count(first);
  count(second);
  EXPECT_THAT(log(), SizeIs(2));
  EXPECT_EQ(first_pid(log({"--last", "1"}).at(0)), second.pid());
  const std::vector<json> of_first = log({"--pid", std::to_string(first.pid())});
  ASSERT_THAT(of_first, SizeIs(1));
  EXPECT_EQ(first_pid(of_first[0]), first.pid());
  EXPECT_THAT(log({"--user", std::to_string(getuid())}), SizeIs(2));
  EXPECT_THAT(log({"--user", "no-such-user"}), IsEmpty());
  EXPECT_THAT(log({"--since", "1h"}), SizeIs(2));
  EXPECT_THAT(log({"--since", "1ns"}), IsEmpty());
  const Child::End wrong = clew({"log", "--since", "soon"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.error, HasSubstr("'soon' is not a duration"));
}

TEST_F(Told, ALogThatCannotBeWrittenIsSaidOnceAndTracingGoesOn) {
  std::filesystem::create_directories(folder_);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  Victim victim("sites");
  const Child::End end =
      clew({"run", kToldQuery, "--json", "--for", "1ms", "-p", std::to_string(victim.pid())});
  EXPECT_EQ(end.status, 0) << end.error;
  const std::string warning = "the log of sessions lacks this one: others may write " + folder_;
  const size_t at = end.error.find(warning);
  ASSERT_NE(at, std::string::npos) << end.error;
  EXPECT_EQ(end.error.find("the log of sessions", at + 1), std::string::npos) << end.error;
}

TEST_F(Told, RootsLogIsWhereItIsWhateverTheEnvironmentSays) {
  if (geteuid() != 0) GTEST_SKIP() << "is about root";
  ASSERT_EQ(setenv("SUDO_USER", "ann", 1), 0);
  Victim victim("sites");
  EXPECT_EQ(clew({"run", kToldQuery, "--for", "1ms", "-p", std::to_string(victim.pid())}).status,
            0);
  (void)unsetenv("SUDO_USER");
  EXPECT_FALSE(std::filesystem::exists(top_ + "/sessions"));
  struct stat status {};
  ASSERT_EQ(stat((folder_ + "/sessions.jsonl").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0137U, 0U);
  const std::vector<json> sessions = log({"--user", "ann"});
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(sessions[0].at("sudo_user"), "ann");
}

TEST_F(Told, ScriptsAreToldAsTheyRan) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Child::End end = clew({"dtrace", "-q", "-n", "BEGIN { exit(0); } syscall::read:entry { }"});
  ASSERT_EQ(end.status, 0) << end.error;
  EXPECT_EQ(clew({"dtrace", "-l", "-n", "BEGIN"}).status, 0);
  EXPECT_NE(clew({"dtrace", "-n", "no_such:::probe { }"}).status, 0);
  const std::vector<json> sessions = log();
  ASSERT_THAT(sessions, SizeIs(2));
  EXPECT_EQ(sessions[0].at("verb"), "dtrace");
  EXPECT_EQ(sessions[0].at("text"), "BEGIN { exit(0); } syscall::read:entry { }");
  EXPECT_EQ(sessions[0].at("kernel"), true);
  EXPECT_EQ(status_of(sessions[0]), "ended");
  EXPECT_EQ(status_of(sessions[1]), "refused");
}

TEST_F(Told, RecordersAndSnapsAreTold) {
  Victim victim("sites");
  Child recorder(
      {.arguments = {CLEW_COMMAND, "record", "-p", std::to_string(victim.pid()), "-o", top_}});
  std::optional<std::string> said = recorder.read_error_line();
  while (said && said->find("recording process") == std::string::npos)
    said = recorder.read_error_line();
  ASSERT_TRUE(said);
  EXPECT_EQ(clew({"snap", std::to_string(victim.pid()), "-o", top_}).status, 0);
  recorder.signal(SIGTERM);
  (void)recorder.wait_for_end();
  const std::vector<json> sessions = log();
  ASSERT_THAT(sessions, SizeIs(2));
  EXPECT_EQ(sessions[0].at("verb"), "record");
  EXPECT_EQ(first_pid(sessions[0]), victim.pid());
  EXPECT_EQ(sessions[1].at("verb"), "snap");
  for (const json& session : sessions)
    EXPECT_EQ(status_of(session), "ended") << session;
}

TEST_F(Told, RulesThatAreWrongRefuseEverySessionAndTheirPlaceIsTold) {
  if (geteuid() != 0) GTEST_SKIP() << "rules are root's";
  set_rules("[limits]\nallow_user = [\"root\"]\n");
  Victim victim("sites");
  const std::string pid = std::to_string(victim.pid());
  const std::string problem =
      "/etc/clew/clew.toml:2:1: error: unknown key 'allow_user'; did you mean 'allow_users'?";
  const std::vector<std::vector<std::string>> all = {{"run", kToldQuery, "-p", pid},
                                                     {"dtrace", "-n", "BEGIN { exit(0); }"},
                                                     {"record", "-p", pid, "-o", top_},
                                                     {"snap", pid}};
  for (const std::vector<std::string>& words : all) {
    const Child::End end = clew(words);
    EXPECT_EQ(end.status, 1) << words[0];
    EXPECT_THAT(end.error, HasSubstr(problem));
  }
  const std::vector<json> sessions = log();
  ASSERT_THAT(sessions, SizeIs(4));
  for (const json& session : sessions) {
    EXPECT_EQ(status_of(session), "refused");
    EXPECT_EQ(session.at("reason"), problem);
  }
  // What is left in a process can be taken out whatever the rules are.
  const Child::End detach = clew({"detach", pid});
  EXPECT_EQ(detach.status, 0);
  EXPECT_THAT(detach.error, HasSubstr(problem));
  EXPECT_EQ(status_of(log().back()), "ended");
  const Child::End doctor = clew({"doctor"});
  EXPECT_EQ(doctor.status, 1);
  EXPECT_THAT(doctor.output, HasSubstr(problem));
  ASSERT_EQ(chmod("/etc/clew/clew.toml", 0666), 0);
  EXPECT_THAT(clew({"run", kToldQuery, "-p", pid}).error, HasSubstr("others than root may write"));
}

TEST_F(Told, AProgramThatIsDeniedIsTracedByNobody) {
  if (geteuid() != 0) GTEST_SKIP() << "rules are root's";
  set_rules("[limits]\ndeny_programs = [\"*/victims/sites\"]\n");
  Victim victim("sites");
  Victim other("calls");
  const std::string pid = std::to_string(victim.pid());
  const std::string reason = "process " + pid + " runs " + victim_path("sites");
  EXPECT_THAT(clew({"run", kToldQuery, "-p", pid}).error, HasSubstr(reason));
  EXPECT_THAT(clew({"dtrace", "-p", pid, "-n", "pid$target::rip_lea:entry { }"}).error,
              HasSubstr(reason));
  EXPECT_THAT(clew({"record", "-p", pid, "-o", top_}).error, HasSubstr(reason));
  EXPECT_THAT(clew({"run", kToldQuery, "-c", victim_path("sites")}).error, HasSubstr(" runs "));
  const std::vector<json> refused = log();
  ASSERT_THAT(refused, SizeIs(4));
  for (const json& session : refused) {
    EXPECT_EQ(status_of(session), "refused") << session;
    EXPECT_THAT(session.at("processes"), SizeIs(1)) << session;
  }
  EXPECT_GT(victim.run(1), 0U);
  const Child::End end = clew({"run", "from e in entry(\"libc.so.6!write\") select count()",
                               "--for", "1ms", "-p", std::to_string(other.pid())});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(clew({"doctor"}).output, HasSubstr("*/victims/sites"));
}

TEST_F(Told, RulesSayWhoTracesAndThatTheLogHasTo) {
  if (geteuid() != 0) GTEST_SKIP() << "rules are root's";
  Victim victim("sites");
  const std::vector<std::string> words = {"run", kToldQuery, "--for",
                                          "1ms", "-p",       std::to_string(victim.pid())};
  set_rules("[limits]\nallow_users = [\"nobody-at-all\"]\n");
  EXPECT_THAT(clew(words).error, HasSubstr("does not let "));
  EXPECT_EQ(status_of(log().at(0)), "refused");
  set_rules("[log]\nrequire = true\n");
  EXPECT_EQ(clew(words).status, 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const Child::End refused = clew(words);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error, HasSubstr("/etc/clew/clew.toml wants each session in the log"));
}

TEST_F(Told, ABugReportHasNoLiteralAndSaysWhatIsInIt) {
  Victim victim("sites");
  const std::string query =
      "from e in entry(\"sites!rip_lea\") where e.comm == \"hidden\" select "
      "count() // concealed\n";
  EXPECT_EQ(clew({"run", query, "--for", "1ms", "-p", std::to_string(victim.pid())}).status, 0);
  const std::string path = top_ + "/report.txt";
  EXPECT_EQ(clew({"bug-report", "-o", path}).status, 0);
  std::stringstream report;
  report << std::ifstream(path).rdbuf();
  for (const char* part :
       {"A bug report of clew", "--- machine\nclew ", "kernel: Linux", "flags: ", "--- sessions\n",
        "from e in entry(\"…\") where e.comm == \"…\"", "run of sites"})
    EXPECT_THAT(report.str(), HasSubstr(part));
  for (const char* part : {"hidden", "concealed", "rip_lea"})
    EXPECT_THAT(report.str(), Not(HasSubstr(part)));
  const Child::End again = clew({"bug-report", "-o", path});
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.error, HasSubstr(path + ": File exists"));
}

// Who adds a verb says here whether it is told.
TEST_F(Told, OfEachVerbItIsKnownWhetherItTouchesAnything) {
  const std::set<std::string> told = {
      "run", "dtrace", "record", "snap", "node", "detach",
      // Those that are queries and scripts are run by the same functions.
      "cpu", "exec", "files", "leaks", "locks", "net", "offcpu", "slow", "sql", "syscalls",
      "throws", "top",
      // With --run; with --stop and --id.
      "explain", "doctor"};
  // `ui` traces nothing: its children are `run` and `dtrace`.
  const std::set<std::string> untold = {"ui",  "show",    "list",      "root",
                                        "key", "results", "cluster",   "examples",
                                        "ps",  "log",     "bug-report"};
  std::istringstream lines(clew({"--help"}).output);
  unsigned count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    const std::string verb = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_TRUE(told.contains(verb) || untold.contains(verb)) << verb;
    ++count;
  }
  EXPECT_EQ(count, told.size() + untold.size());
}

TEST_F(Told, ALookThatStopsTheProcessIsTold) {
  Victim victim("sites");
  (void)clew({"doctor", "--stop", "-p", std::to_string(victim.pid())});
  const std::vector<json> sessions = log();
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(sessions[0].at("verb"), "doctor");
  EXPECT_EQ(first_pid(sessions[0]), victim.pid());
}

}  // namespace
}  // namespace clew::live
