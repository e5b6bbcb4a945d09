// SPDX-License-Identifier: Apache-2.0
// What the command says to wrong input: a clear message, the right exit status, and no process
// changed.
#include <cctype>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

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

// `clew run` under a limit of the shell.
Child::End run_under(const std::string& limit, const std::string& query, pid_t pid) {
  Child child({.arguments = {"sh", "-c", "ulimit " + limit + "; exec \"$@\"", "sh", CLEW_COMMAND,
                             "run", query, "-p", std::to_string(pid)}});
  child.close_input();
  return child.wait_for_end();
}

TEST(Command, AShellsLimitOfFileSizesIsRaisedOrSaid) {
  Victim victim("sites");
  const ProcessState before = ProcessState::of(victim.pid());
  const std::string query = "entry(\"sites!rip_lea\") for 10ms";
  // What may be raised is.
  const Child::End soft = run_under("-S -f 1000", query, victim.pid());
  EXPECT_EQ(soft.status, 0) << soft.error;
  const Child::End hard = run_under("-f 1000", query, victim.pid());
  if (hard.status != 0) {  // Not where CAP_SYS_RESOURCE raises it.
    EXPECT_EQ(hard.status, 1) << "a signal's end";
    EXPECT_THAT(hard.error, AllOf(HasSubstr("ulimit -f"), HasSubstr("[file-size]")));
  }
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Command, ATracerThatMayOpenNoFilesLeavesAProcessAlone) {
  Victim victim("sites");
  const ProcessState before = ProcessState::of(victim.pid());
  for (const int files : {8, 10, 13, 20}) {
    const Child::End end =
        run_under("-n " + std::to_string(files), "entry(\"sites!rip_lea\") for 10ms", victim.pid());
    if (end.status != 0) {
      EXPECT_EQ(end.status, 1) << files;
      EXPECT_THAT(end.error, testing::AnyOf(HasSubstr("[descriptors]"), HasSubstr("open files")));
    }
    expect_no_residue(before, victim.pid());
  }
  expect_text_equals_file(victim.pid());
}

TEST(Command, AProcessThatMayOpenNoFilesIsRefused) {
  Victim victim("sites");
  const ProcessState before = ProcessState::of(victim.pid());
  rlimit limit{};
  ASSERT_EQ(prlimit(victim.pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  limit.rlim_cur = 3;
  ASSERT_EQ(prlimit(victim.pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  const Report report =
      run_clew({"run", entries_of("sites!rip_lea"), "-p", std::to_string(victim.pid()), "--json"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("[descriptors]"));
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
}

TEST(Command, AnUnknownFunctionIsAnsweredWithTheNearestName) {
  Victim victim("sites");
  expect_refused(victim, entries_of("sites!rip_laa"),
                 AllOf(HasSubstr("query:1:11: error:"), HasSubstr("rip_lea"), HasSubstr("^~~~")));
}

TEST(Command, AnUnknownModuleIsAnsweredWithTheNearestName) {
  Victim victim("sites");
  expect_refused(victim, entries_of("sitez!rip_lea"),
                 AllOf(HasSubstr("query:1:11: error:"), HasSubstr("sites"), HasSubstr("^~~~")));
}

TEST(Command, ASyntaxErrorIsShownWithItsPlace) {
  Victim victim("sites");
  expect_refused(victim, "from e in entry(\"sites!*\") selekt count()",
                 AllOf(HasSubstr("error:"), HasSubstr("^")));
}

TEST(Command, AnOffsetBeyondTheFunctionIsRefused) {
  Victim victim("sites");
  expect_refused(victim, R"(from e in offset("sites!rip_lea", 0x4000) select count())",
                 HasSubstr("offset 0x4000 is beyond 'rip_lea', which has "));
}

TEST(Command, APatternOfOffsetsTakesTheFunctionsThatAreLongEnough) {
  Victim victim("typed");  // `halved` is short, `victim_run` is not.
  const Report report = run_clew({"run", R"(from e in offset("typed!*", 0x40) select count())",
                                  "-p", std::to_string(victim.pid()), "--json", "--for", "10ms"});
  EXPECT_EQ(report.status, 0) << report.error;
}

TEST(Command, APidThatDoesNotExistIsAnError) {
  const Report report = run_clew({"run", entries_of("sites!*"), "-p", "4194303"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, AllOf(HasSubstr("error:"), HasSubstr("4194303")));
}

TEST(Command, AProgramThatUsesGsIsRefusedWithThatReason) {
  Victim victim("uses_gs");
  victim.ask("use_gs");
  const uint64_t result = victim.run(100);
  expect_refused(victim, entries_of("uses_gs!read_gs"), HasSubstr("gs"));
  EXPECT_EQ(victim.run(100), result);
}

TEST(Command, OfSeveralSourcesTheOneThatMatchesNothingIsShown) {
  Victim victim("sites");
  expect_refused(victim,
                 "from e in entry(\"sites!rip_*\"),\n          entry(\"sites!nothing_here\")\n"
                 "select count()",
                 AllOf(HasSubstr("query:2:11: error:"), HasSubstr("nothing_here"),
                       HasSubstr("\n          ^~~~")));
}

TEST(Command, AProcessThatForbidsItselfTheTimeIsCountedButNotTimed) {
  Victim victim("keys");
  victim.ask("forbid_time");
  const std::string source = "(\"keys!take_key\") ";
  expect_refused(victim, "from k in return" + source + "select sum(k.elapsed)",
                 HasSubstr("PR_SET_TSC"));
  expect_refused(victim, "from k in entry" + source + "select k.arg0", HasSubstr("PR_SET_TSC"));
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("keys!take_key"));
  victim.ask("fast 100");
  EXPECT_EQ(tracer.finish().calls()["take_key"], 100U);
}

TEST(Command, TheIntervalThatTheEndCutsIsMarked) {
  Victim victim("keys");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("keys!take_key"), {"--every", "1h"});
  victim.ask("fast 100");
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("interval"), 1);
  EXPECT_EQ(report.rows[0].at("partial"), true);
  EXPECT_EQ(report.rows[0].at("calls"), 100);
}

TEST(Command, TimesAreThoseOfTheWallClock) {
  const auto now_ns = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  Victim victim("keys");
  Tracer tracer = Tracer::attach(
      victim.pid(), "from k in entry(\"keys!take_key\") select new { k.time, twice = k.time }");
  const auto before = now_ns();
  victim.ask("one 5");
  const auto after = now_ns();
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  constexpr int64_t kSkewNs = 1'000'000;  // Of the rate of the time stamp counter.
  EXPECT_GE(report.rows[0].at("time").get<int64_t>(), before - kSkewNs);
  EXPECT_LE(report.rows[0].at("time").get<int64_t>(), after + kSkewNs);
  EXPECT_EQ(report.rows[0].at("twice"), report.rows[0].at("time"));
}

// A copy of Clew that is installed somewhere, with a vocabulary of its own.
class Installed {
 public:
  Installed() : prefix_(fs::temp_directory_path() / ("clew-" + std::to_string(getpid()))) {
    Child install({.arguments = {"cmake", "--install", CLEW_BUILD, "--prefix", prefix_.string()}});
    const Child::End end = install.wait_for_end();
    EXPECT_EQ(end.status, 0) << end.error;
  }
  Installed(const Installed&) = delete;
  Installed& operator=(const Installed&) = delete;
  ~Installed() { fs::remove_all(prefix_); }

  [[nodiscard]] fs::path vocabulary() const { return prefix_ / "share/clew/vocabulary"; }
  [[nodiscard]] std::string tracepoints(const std::vector<std::string>& environment = {}) const {
    Child list(
        {.arguments = {prefix_ / "bin/clew", "list", "--tracepoints"}, .environment = environment});
    return list.wait_for_end().output;
  }

 private:
  fs::path prefix_;
};

void write_tracepoint(const fs::path& path, const std::string& name) {
  std::ofstream(path) << "[[tracepoint]]\nname = \"" << name
                      << "\"\ndoc = \"For a test\"\nfunction = \"libc.so.6!malloc\"\n";
}

TEST(Command, AnInstalledClewFindsTheVocabularyBesideIt) {
  const Installed installed;
  EXPECT_THAT(installed.tracepoints(), HasSubstr("libc.malloc"));
  fs::remove(installed.vocabulary() / "libc.toml");
  write_tracepoint(installed.vocabulary() / "own.toml", "beside.point");
  EXPECT_THAT(installed.tracepoints(),
              AllOf(HasSubstr("beside.point"), Not(HasSubstr("libc.malloc"))));
  const fs::path named = installed.vocabulary().parent_path() / "named.toml";
  write_tracepoint(named, "named.point");
  EXPECT_THAT(installed.tracepoints({"CLEW_VOCABULARY=" + named.string()}),
              AllOf(HasSubstr("named.point"), Not(HasSubstr("beside.point"))));
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
  // Wherever the query stands.
  Victim victim("sites");
  const std::string pid = std::to_string(victim.pid());
  for (const char* option : {"--ext", "--vocabulary"}) {
    const Report report = run_clew({"run", option, "/no/such", entries_of("sites!*"), "-p", pid});
    EXPECT_THAT(report.error, HasSubstr("/no/such")) << option;
  }
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

TEST(Command, ListTakesSeveralProcessesAndNamesAFunctionOnce) {
  Victim first("sites");
  Victim second("sites");
  Victim other("keys");
  const std::string pids = fmt::format("{},{}", first.pid(), other.pid());
  const Child::End end = clew({"list", "*!*_l*", "-p", pids, "-p", std::to_string(second.pid())});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr("sites!rip_lea"));
  EXPECT_EQ(end.output.find("sites!rip_lea"), end.output.rfind("sites!rip_lea"));
  EXPECT_EQ(clew({"list", "*!take_key", "-p", pids}).output,
            clew({"list", "*!take_key", "-p", std::to_string(other.pid())}).output);
  EXPECT_EQ(clew({"list", "*", "-n", "no_such_program"}).status, 1);
}

// A victim under a name that no other process of the machine has.
class Named {
 public:
  Named(const std::string& victim, const std::string& name)
      : path_(fs::temp_directory_path() / name),
        victim_({.arguments = {copied(victim_path(victim), path_)}}, Victim::Place::Started) {}
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  ~Named() { fs::remove(path_); }

 private:
  static std::string copied(const std::string& from, const fs::path& to) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
    return to.string();
  }
  fs::path path_;
  Victim victim_;
};

// -n once for each name, and a comma is a character of it, as a name may have one; -p has them.
TEST(Command, ListTakesSeveralNamesAsRunDoes) {
  const std::string sites = fmt::format("s{}", getpid());
  const std::string keys = fmt::format("k{}", getpid());
  const std::string comma = sites + "," + keys.substr(0, 3);
  const Named first("sites", sites);
  const Named second("keys", keys);
  const auto listed = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"list", "*!*_[lk]e[ay]"});
    return clew(more);
  };
  const std::string site = sites + "!rip_lea";
  const std::string key = keys + "!take_key";
  EXPECT_THAT(listed({"-n", sites}).output, AllOf(HasSubstr(site), Not(HasSubstr(key))));
  EXPECT_THAT(listed({"-n", sites, "-n", keys}).output, AllOf(HasSubstr(site), HasSubstr(key)));
  EXPECT_THAT(listed({"--name", sites, "--name=" + keys}).output,
              AllOf(HasSubstr(site), HasSubstr(key)));
  const std::string query = "from e in entry(\"libc.so.6!free\") select count() for 1ms";
  const Report report = run_clew({"run", "--json", query, "-n", sites, "-n", keys});
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.summary.at("sites"), 2U);  // One in each.
  // One of several that is nobody's name.
  const auto expect_nobody = [](const Child::End& end, const std::string& name) {
    EXPECT_EQ(end.status, 1);
    EXPECT_THAT(end.error, HasSubstr(fmt::format("no process is called '{}'", name)));
  };
  expect_nobody(listed({"-n", sites + "," + keys}), sites + "," + keys);
  expect_nobody(clew({"run", query, "-n", sites + "," + keys}), sites + "," + keys);
  expect_nobody(listed({"-n", sites, "-n", "no_such_program"}), "no_such_program");
  expect_nobody(clew({"run", query, "-n", sites, "-n", "no_such_program"}), "no_such_program");
  const Named third("keys", comma);
  EXPECT_THAT(listed({"-n", comma}).output,
              AllOf(HasSubstr(comma + "!take_key"), Not(HasSubstr(site))));
}

TEST(Command, ADottedPatternListsTracepointsWithoutAProcess) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "libc.*"}, {"list", "--tracepoints", "libc.*"}}) {
    const Child::End end = clew(words);
    EXPECT_EQ(end.status, 0) << end.error;
    EXPECT_THAT(end.output, AllOf(HasSubstr("libc.malloc"), Not(HasSubstr("redis."))));
  }
  EXPECT_THAT(clew({"list", "--fields", "ret*"}).output,
              AllOf(HasSubstr("retval"), Not(HasSubstr("elapsed"))));
  EXPECT_EQ(clew({"list", "--fields", "no_such*"}).status, 1);
}

TEST(Command, TracepointsOfAProgramAreListedByItsName) {
  const Child::End redis = clew({"list", "--tracepoints", "redis"});
  EXPECT_EQ(redis.status, 0) << redis.error;
  EXPECT_THAT(redis.output, AllOf(HasSubstr("redis.lookup"), Not(HasSubstr("nginx."))));
  const Child::End nginx = clew({"list", "--tracepoints", "nginx"});
  EXPECT_THAT(nginx.output, AllOf(HasSubstr("nginx.request"), HasSubstr("a program: ")));
}

TEST(Command, ListSaysWhatTracepointsDoToRequests) {
  const Child::End end = clew({"list", "clew.*"});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, AllOf(HasSubstr("cause: begin (explicit): a request begins\n"),
                                HasSubstr("): the request is handed over with "),
                                HasSubstr("at entry(\"clew_cause_begin\")\n"),
                                HasSubstr("each exports host, ")));
  const Child::End json = clew({"list", "clew.begin", "--json"});
  const auto line = nlohmann::json::parse(json.output);
  EXPECT_EQ(line.at("cause"), "begin");
  EXPECT_EQ(line.at("how"), "explicit");
  EXPECT_EQ(line.at("places").size(), 1U);
}

TEST(Command, ListOfAVocabularyTakesNoProcess) {
  const std::string path = testing::TempDir() + "listed." + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "[[tracepoint]]\nname = \"shop.submit\"\ndoc = \"A job waits\"\n"
                         "function = \"shopd!submit\"\nexports = { job = \"arg1\" }\n"
                         "cause = \"put job\"\nhow = \"heuristic\"\n"
                         "[[program]]\nname = \"shopd\"\nonward = \"last\"\nhow = \"heuristic\"\n";
  const Child::End end = clew({"list", "shop*", "--vocabulary", path});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output,
              AllOf(HasSubstr("shop.submit "), HasSubstr("A job waits"), HasSubstr(".job = arg1"),
                    HasSubstr("at entry(\"shopd!submit\")"),
                    HasSubstr("put job (heuristic): the request is handed over with job\n"),
                    HasSubstr("a program: writes onward for the message read last (heuristic)\n")));
  (void)std::filesystem::remove(path);
}

TEST(Command, ListSaysWhichEventsOfTheKernelHaveAField) {
  EXPECT_THAT(clew({"list", "--fields", "errno"}).output, HasSubstr("syscall_return"));
  EXPECT_THAT(clew({"list", "--fields", "*pc"}).output,
              AllOf(HasSubstr("kernel_pc"), HasSubstr("user_pc"), HasSubstr("profile")));
  EXPECT_THAT(clew({"list", "--fields", "elapsed"}).output, HasSubstr("kernel_return"));
}

TEST(Command, ListOfWhatAllProcessesHaveTakesNoProcess) {
  for (const char* list : {"--fields", "--tracepoints", "--kernel"}) {
    const Child::End end = clew({"list", list, "-p", "1"});
    EXPECT_EQ(end.status, 2) << list;
    EXPECT_THAT(end.error, AllOf(HasSubstr(list), HasSubstr("excludes"), HasSubstr("--pid")));
  }
}

TEST(Command, ListShowsNamesAndTypesOfArguments) {
  Victim victim("keys");
  const Child::End end = clew({"list", "keys!take_key", "-p", std::to_string(victim.pid())});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, AllOf(HasSubstr("keys!take_key("), HasSubstr(" key)")));
  const Child::End json =
      clew({"list", "keys!take_key", "-p", std::to_string(victim.pid()), "--json"});
  EXPECT_THAT(json.output, AllOf(HasSubstr("\"field\":\"arg0\""), HasSubstr("\"result\"")));
}

TEST(Command, ListAndDoctorSayWhatALaterUprobeWouldDo) {
  Victim firsts("firsts");
  const Child::End listed =
      clew({"list", "firsts!first_*", "--sites", "-p", std::to_string(firsts.pid())});
  EXPECT_THAT(listed.output, AllOf(HasSubstr("entry: yes, exits: yes, later uprobe: safe\n"),
                                   Not(HasSubstr("dangerous"))));
  Victim sites("sites");
  const std::string pid = std::to_string(sites.pid());
  EXPECT_THAT(clew({"list", "sites!*", "--sites", "-p", pid}).output,
              AllOf(HasSubstr("entry: later-uprobe"), HasSubstr("entry: yes without xmm0")));
  EXPECT_THAT(
      clew({"list", "sites!*", "--sites", "--json", "-p", pid}).output,
      AllOf(HasSubstr(R"("entry":"later-uprobe")"), HasSubstr(R"("entry_without":["xmm0"])"),
            Not(HasSubstr(R"("later_uprobe":"dangerous")"))));
  EXPECT_THAT(clew({"doctor", "-p", pid}).output,
              AllOf(HasSubstr(" entries bear later uprobes of others"),
                    HasSubstr("one would end the process [later-uprobe]")));
}

// Entry and return of a short function share a window, and are two sites.
TEST(Command, PsCountsTheSitesThatTheSessionNamed) {
  Victim victim("firsts");
  const std::string query =
      R"(from e in entry("firsts!first_*"), return("firsts!first_*") select count())";
  Tracer tracer = Tracer::attach(victim.pid(), query);
  Tracer other = Tracer::attach(victim.pid(), entries_of("firsts!first_*"));
  std::istringstream lines(clew({"ps", "--json"}).output);
  uint64_t sites = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto process = nlohmann::json::parse(line);
    if (process.at("pid") == victim.pid()) sites = process.at("sites");
  }
  const auto named = [](Tracer& session) {
    return session.finish().summary.at("sites").get<uint64_t>();
  };
  EXPECT_EQ(sites, named(other) + named(tracer));
  EXPECT_EQ(sites, 72U);  // 24 functions.
}

TEST(Command, DetachSaysWhenThereIsNothingToRemoveAndWhenASessionIsAlive) {
  Victim victim("keys");
  const std::string pid = std::to_string(victim.pid());
  const Child::End nothing = clew({"detach", pid});
  EXPECT_EQ(nothing.status, 0) << nothing.error;
  EXPECT_THAT(nothing.output, HasSubstr("nothing to remove"));
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("keys!take_key"));
  EXPECT_THAT(clew({"ps"}).output, AllOf(HasSubstr("PROGRAM"), HasSubstr("keys")));
  const Child::End alive = clew({"detach", pid});
  EXPECT_EQ(alive.status, 1);
  EXPECT_THAT(alive.error, AllOf(HasSubstr("is alive"), HasSubstr("--force")));
  victim.ask("fast 100");
  EXPECT_EQ(tracer.finish().calls()["take_key"], 100U);
}

TEST(Command, AFileThatIsNotThereIsCalledSo) {
  const Child::End end = clew({"run", "nosuchfile.clew", "-p", "1"});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("no such file: nosuchfile.clew"));
}

TEST(Command, DoctorReportsAStoppedProcess) {
  Victim victim("keys");
  kill(victim.pid(), SIGSTOP);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(victim.pid()), &info, WSTOPPED);
  const Child::End end = clew({"doctor", "-p", std::to_string(victim.pid())});
  kill(victim.pid(), SIGCONT);
  EXPECT_THAT(end.output, HasSubstr("kill -CONT"));
}

TEST(Command, ALineThatDoesNotExistIsNotCalledAFileThatDoesNot) {
  Victim victim("keys");
  const Child::End end = clew({"run", "from e in line(\"keys.c:99999\") select count()", "-p",
                               std::to_string(victim.pid())});
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("no code at keys.c:99999"));
}

const std::string kMallocs = R"(from m in entry("libc.so.6!malloc") select count())";

TEST(Command, ACommandThatOutlivesTheSessionGoesOn) {
  Child tracer({.arguments = {CLEW_COMMAND, "run", kMallocs, "--json", "--for", "200ms", "-c",
                              "/bin/sleep 1000"}});
  const std::string words = "the command goes on as process ";
  pid_t pid = 0;
  for (auto line = tracer.read_error_line(); line; line = tracer.read_error_line()) {
    const size_t at = line->find(words);
    if (at == std::string::npos) continue;
    pid = std::stoi(line->substr(at + words.size()));
    break;
  }
  ASSERT_NE(pid, 0);
  EXPECT_EQ(kill(pid, SIGKILL), 0);  // It holds our pipes.
  EXPECT_EQ(tracer.wait_for_end().status, 0);
}

TEST(Command, HowTheCommandEndedIsSaidAndIsNoLoss) {
  const Report killed = run_clew({"run", kMallocs, "--json", "-c", "/bin/sh -c 'kill -9 $$'"});
  EXPECT_EQ(killed.status, 0) << killed.error;
  EXPECT_THAT(killed.error, HasSubstr("killed by signal 9 (KILL)"));
  EXPECT_TRUE(killed.summary.at("lost").empty()) << killed.summary;
  const Report failed = run_clew({"run", kMallocs, "--json", "-c", "/bin/sh -c 'exit 3'"});
  EXPECT_THAT(failed.error, HasSubstr("exited with status 3"));
}

TEST(Command, StartsWhereTheBreakpointsOfTheProcessorDoNotWork) {
  setenv("CLEW_NO_DEBUG_REGISTERS", "1", 1);  // NOLINT(concurrency-mt-unsafe)
  const Report report = run_clew({"run", kMallocs, "-v", "--json", "-c", "/bin/sh -c 'exit 3'"});
  unsetenv("CLEW_NO_DEBUG_REGISTERS");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_THAT(report.error, HasSubstr("breakpoints of the processor do not work"));
  EXPECT_THAT(report.error, HasSubstr("exited with status 3"));
  EXPECT_TRUE(report.summary.at("lost").empty()) << report.summary;
}

TEST(Command, ASyntaxErrorIsFoundBeforeAnythingIsStarted) {
  const Report report = run_clew({"run", "from e in entry(\"x\") selekt count()", "-p", "4194303"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("selekt"));
}

// What the reference calls by a name.
TEST(Command, ListsAllFieldsOfTheReference) {
  const Child::End listed = clew({"list", "--fields"});
  // Not by __FILE__, which ccache may make relative.
  std::ifstream reference(fs::path(CLEW_EXAMPLES) / "../docs/query-language.md");
  size_t names = 0;
  bool is_table = false;
  for (std::string line; std::getline(reference, line);) {
    if (line.starts_with("| field | type | where |")) is_table = true;
    if (line.empty()) is_table = false;
    if (!is_table || !line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    for (size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at)) {
      const size_t end = cell.find('`', at + 1);
      std::string name = cell.substr(at + 1, end - at - 1);
      while (std::isdigit(static_cast<unsigned char>(name.back())) != 0)
        name.pop_back();
      EXPECT_THAT(listed.output, HasSubstr(name));
      ++names;
      at = end + 1;
    }
  }
  EXPECT_GT(names, 20U);
}

}  // namespace
}  // namespace clew::live
