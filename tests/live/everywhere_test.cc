// SPDX-License-Identifier: Apache-2.0
// Functions of all processes of a machine: of those that have the module, or get it later, and no
// others.
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

// Victims under a name that no other test's have.
class ManyByModule : public testing::Test {
 protected:
  ManyByModule() : name_("everywhere_" + std::to_string(getpid())) {
    fs::copy_file(fs::path(CLEW_VICTIMS) / "sites", fs::path(CLEW_VICTIMS) / name_);
  }
  ~ManyByModule() override { fs::remove(fs::path(CLEW_VICTIMS) / name_); }

  [[nodiscard]] std::string calls_of(const std::string& scope) const {
    return "from e in " + scope + ".Function(\"" + name_ + "!*\") group by e.pid, e.function " +
           "select new { process = e.pid, name = e.function, calls = count() }";
  }

  static Numbers calls_in(const Report& report, pid_t process) {
    Numbers calls;
    for (const nlohmann::json& row : report.rows) {
      if (row.at("process") == process) calls[row.at("name")] = row.at("calls");
    }
    return calls;
  }

  std::string name_;
};

TEST_F(ManyByModule, AllProcessesThatHaveTheModuleAreTraced) {
  for (const std::string scope : {"machine", "cluster"}) {
    Victim one(name_);
    Victim other(name_);
    Victim stranger("sites");
    Tracer tracer = Tracer::start(calls_of(scope), {"--allow-missing"});
    const Numbers before = one.counts();
    one.run(3);
    other.run(5);
    stranger.run(7);
    const Numbers truth = difference(before, one.counts());
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.summary.at("processes"), 2);
    const Numbers calls = calls_in(report, one.pid());
    const Numbers others = calls_in(report, other.pid());
    size_t compared = 0;
    for (const auto& [name, count] : truth) {
      if (!calls.contains(name)) continue;
      ++compared;
      EXPECT_EQ(calls.at(name), count) << name;
      EXPECT_EQ(3 * others.at(name), 5 * count) << name;
    }
    EXPECT_GT(compared, 10U);
    EXPECT_TRUE(calls_in(report, stranger.pid()).empty());
  }
}

TEST_F(ManyByModule, AFunctionNeedsItsModule) {
  const Report none = run_clew({"run", "from e in machine.Function(\"f\") select count()"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.error, HasSubstr("a function of all processes needs its module"));
  const Report unknown =
      run_clew({"run", "from e in machine.Function(\"nobody_has_it!f\") select count()"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.error, HasSubstr("no process of this machine has 'nobody_has_it' mapped"));
}

// In none of several.
TEST_F(ManyByModule, AFunctionThatNoneHasIsAnErrorWithTheNearestName) {
  const Victim one(name_);
  const Victim other(name_);
  const Report report =
      run_clew({"run", "from e in machine.Function(\"" + name_ + "!no_such\") select count()"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("no function 'no_such' in " + name_));
  EXPECT_THAT(report.error, HasSubstr("nor in the others that are traced"));
}

// Until the tracer has said that it traces the process. `said`: what it says before.
bool is_traced_later(Tracer& tracer, pid_t process, std::string* said = nullptr) {
  const std::string words = "pid " + std::to_string(process) + "  is traced";
  while (const auto line = tracer.child().read_error_line()) {
    if (line->find(words) != std::string::npos) return true;
    if (said != nullptr) *said += *line + "\n";
  }
  return false;
}

class NewcomersByModule : public ManyByModule {
 protected:
  void SetUp() override {
    if (geteuid() != 0)
      GTEST_SKIP() << "NOT TESTED: the kernel tells of others' programs root only";
  }

  // A process that comes while the session runs is counted from when it has probes.
  void expect_exact(Victim& later, Tracer& tracer, uint64_t rounds) {
    ASSERT_TRUE(is_traced_later(tracer, later.pid()));
    const Numbers before = later.counts();
    later.run(rounds);
    truth_[later.pid()] = difference(before, later.counts());
  }

  void expect_counted(const Report& report) const {
    for (const auto& [process, truth] : truth_) {
      const Numbers calls = calls_in(report, process);
      size_t compared = 0;
      for (const auto& [name, count] : truth) {
        if (!calls.contains(name)) continue;
        ++compared;
        EXPECT_EQ(calls.at(name), count) << name << " of " << process;
      }
      EXPECT_GT(compared, 10U) << process;
    }
  }

  std::map<pid_t, Numbers> truth_;
};

TEST_F(NewcomersByModule, AProcessThatBeginsLaterIsTraced) {
  Victim first(name_);
  Tracer tracer = Tracer::start(calls_of("machine"), {"--allow-missing", "-v"});
  Victim stranger("sites");
  Victim later(name_);
  expect_exact(later, tracer, 4);
  Victim last(name_);
  expect_exact(last, tracer, 6);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  expect_counted(report);
  EXPECT_TRUE(calls_in(report, stranger.pid()).empty());
  EXPECT_EQ(report.summary.at("processes"), 3);
  EXPECT_THAT(report.summary.at("lost").dump(),
              HasSubstr("2 processes that got the module during the session had probes only"));
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  for (const Victim* each : {&first, &later, &last})
    expect_text_equals_file(each->pid());
}

// It does not end with those that it began with.
TEST_F(NewcomersByModule, ASessionGoesOnWhenItsProcessesHaveEnded) {
  auto first = std::make_optional<Victim>(name_);
  Tracer tracer = Tracer::start(calls_of("machine"), {"--allow-missing", "-v"});
  first->child().signal(SIGKILL);
  first.reset();
  Victim later(name_);
  expect_exact(later, tracer, 4);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  expect_counted(report);
}

// A session may see any number of them: what those counted that have gone is in the answer.
TEST_F(NewcomersByModule, ThoseThatHaveGoneLeaveTheirCounts) {
  constexpr uint64_t kComing = 30;
  for (const std::string extra : {"count()", "count(), longest = max(e.arg0)"}) {
    Victim first(name_);
    Tracer tracer = Tracer::start("from e in machine.Function(\"" + name_ +
                                      "!*\") group by e.function "
                                      "select new { name = e.function, calls = " +
                                      extra + " }",
                                  {"--allow-missing", "-v"});
    Numbers truth;
    std::string said;
    for (uint64_t i = 0; i < kComing; ++i) {
      Victim later(name_);
      ASSERT_TRUE(is_traced_later(tracer, later.pid(), &said)) << i;
      const Numbers before = later.counts();
      later.run(2);
      for (const auto& [name, count] : difference(before, later.counts()))
        truth[name] += count;
    }
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.summary.at("processes"), 1 + kComing);
    EXPECT_EQ(report.lost(), 0U) << report.summary;
    const Numbers calls = report.calls();
    size_t compared = 0;
    for (const auto& [name, count] : truth) {
      if (!calls.contains(name)) continue;
      ++compared;
      EXPECT_EQ(calls.at(name), count) << name;
    }
    EXPECT_GT(compared, 10U);
    EXPECT_THAT(said, HasSubstr("has ended, and leaves its counts"));
  }
}

// Opens a library when it is told to, calls it, and goes on in a child.
class Opener {
 public:
  explicit Opener(const std::string& argument = "any")
      : child_({.arguments = {"python3", "-c", kProgram, argument}}) {
    ask("none");
  }
  void ask(const std::string& command) {
    child_.write_line(command);
    EXPECT_EQ(child_.read_line(), "done");
  }
  [[nodiscard]] pid_t pid() const { return child_.pid(); }

 private:
  static constexpr const char* kProgram =
      "import ctypes, os, sys\n"
      "for line in sys.stdin:\n"
      "  word, _, rest = line.strip().partition(' ')\n"
      "  if word == 'open': library = ctypes.CDLL(rest)\n"
      "  if word == 'call': [library.plugin_work(i) for i in range(int(rest))]\n"
      "  if word == 'crc32': [library.crc32(0, None, 0) for i in range(int(rest))]\n"
      "  if word == 'fork' and os.fork() != 0: os._exit(0)\n"
      "  if word == 'again':\n"
      "    print('done', flush=True)\n"
      "    os.execve(sys.executable, sys.orig_argv[:3], {**os.environ, 'LD_PRELOAD': rest})\n"
      "  print('done', flush=True)\n";
  Child child_;
};

TEST_F(NewcomersByModule, ALibraryThatAProcessOpensLaterIsTraced) {
  const std::string library = victim_path("lib" + name_ + ".so");
  fs::copy_file(victim_path("libplugin_a.so"), library);
  Opener first;
  Opener later;
  first.ask("open " + library);
  Tracer tracer = Tracer::start("from e in machine.Function(\"lib" + name_ +
                                    ".so!plugin_work\") group by e.pid "
                                    "select new { process = e.pid, calls = count() } "
                                    "orderby calls",
                                {"-v"});
  later.ask("open " + library);
  ASSERT_TRUE(is_traced_later(tracer, later.pid()));
  first.ask("call 300");
  later.ask("call 500");
  const Report report = tracer.finish();
  fs::remove(library);
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].at("process"), first.pid());
  EXPECT_EQ(report.rows[0].at("calls"), 300);
  EXPECT_EQ(report.rows[1].at("process"), later.pid());
  EXPECT_EQ(report.rows[1].at("calls"), 500);
  expect_text_equals_file(later.pid());
}

// It is in libz.so.1.2.13, say.
TEST_F(NewcomersByModule, ALibraryIsKnownByItsSoname) {
  Opener opener(name_);
  opener.ask("open libz.so.1");
  Tracer tracer = Tracer::start(
      "from e in machine.Function(\"libz.so.1!crc32\") group by e.pid "
      "select new { process = e.pid, calls = count() }",
      {"--command-line", name_});
  opener.ask("crc32 40");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("process"), opener.pid());
  EXPECT_EQ(report.rows[0].at("calls"), 40);
}

// Of one function, which takes a jump: the session has processes alone.
TEST_F(NewcomersByModule, ThoseThatHaveGoneLeaveTheirCountsWithoutUprobesAsWell) {
  const std::string library = victim_path("lib" + name_ + ".so");
  fs::copy_file(victim_path("libplugin_a.so"), library);
  Opener first;
  first.ask("open " + library);
  Tracer tracer = Tracer::start("from e in machine.Function(\"lib" + name_ +
                                    ".so!plugin_work\") select new { calls = count() }",
                                {"-v"});
  std::string said;
  for (int i = 0; i < 3; ++i) {
    Opener later;
    later.ask("open " + library);
    ASSERT_TRUE(is_traced_later(tracer, later.pid(), &said));
    later.ask("call 100");
  }
  first.ask("call 7");
  const Report report = tracer.finish();
  fs::remove(library);
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.rows[0].at("calls"), 307);
  EXPECT_THAT(said, HasSubstr("has ended, and leaves its counts"));
}

TEST_F(NewcomersByModule, AChildThatOutlivesItsParentCountsOn) {
  const std::string library = victim_path("lib" + name_ + ".so");
  fs::copy_file(victim_path("libplugin_a.so"), library);
  Opener first;
  Opener parent;
  Opener last;
  first.ask("open " + library);
  Tracer tracer = Tracer::start("from e in machine.Function(\"lib" + name_ +
                                    ".so!plugin_work\") select new { calls = count() }",
                                {"-v"});
  parent.ask("open " + library);
  ASSERT_TRUE(is_traced_later(tracer, parent.pid()));
  parent.ask("call 100");
  parent.ask("fork");
  // The tracer has had its turn meanwhile.
  last.ask("open " + library);
  ASSERT_TRUE(is_traced_later(tracer, last.pid()));
  parent.ask("call 500");
  const Report report = tracer.finish();
  fs::remove(library);
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.rows[0].at("calls"), 600);
}

// Nor is the program that it begins next.
TEST_F(NewcomersByModule, WhoIsNotMeantIsLeftAlone) {
  const std::string library = victim_path("lib" + name_ + ".so");
  fs::copy_file(victim_path("libplugin_a.so"), library);
  Opener first("meant");
  Opener later("meant");
  Opener last("meant");
  Opener stranger;
  first.ask("open " + library);
  Tracer tracer = Tracer::start("from e in machine.Function(\"lib" + name_ +
                                    ".so!plugin_work\") group by e.pid "
                                    "select new { process = e.pid, calls = count() }",
                                {"-v", "--command-line", "meant"});
  stranger.ask("open " + library);
  later.ask("open " + library);
  ASSERT_TRUE(is_traced_later(tracer, later.pid()));
  later.ask("call 300");
  stranger.ask("again " + library);
  stranger.ask("open " + library);
  last.ask("open " + library);
  ASSERT_TRUE(is_traced_later(tracer, last.pid()));
  stranger.ask("call 500");
  const Report report = tracer.finish();
  fs::remove(library);
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("process"), later.pid());
  EXPECT_EQ(report.rows[0].at("calls"), 300);
}

TEST_F(NewcomersByModule, WithNoneYetTheFirstIsWaitedFor) {
  Child waiting(
      {.arguments = {CLEW_COMMAND, "run", "--json", calls_of("machine"), "--allow-missing"}});
  const auto told = waiting.read_error_line();
  ASSERT_TRUE(told.has_value());
  EXPECT_THAT(*told, HasSubstr("waiting for a process that has '" + name_ + "' mapped"));
  Victim first(name_);
  const auto armed = waiting.read_error_line();
  ASSERT_TRUE(armed.has_value());
  EXPECT_THAT(*armed, HasSubstr("in 1 process and in those that come"));
  waiting.signal(SIGINT);
  EXPECT_EQ(waiting.wait_for_end().status, 0);
}

// Which is over before anybody has read it.
TEST_F(NewcomersByModule, AFirstThatIsBriefIsNotTheLast) {
  Child waiting(
      {.arguments = {CLEW_COMMAND, "run", "--json", calls_of("machine"), "--allow-missing"}});
  ASSERT_TRUE(waiting.read_error_line().has_value());
  for (int i = 0; i < 20; ++i) {
    Child brief({.arguments = {victim_path(name_)}});
    brief.signal(SIGKILL);
    brief.wait_for_end();
  }
  const bool is_waiting = waiting.running();
  waiting.signal(SIGINT);
  const Child::End end = waiting.wait_for_end();
  EXPECT_TRUE(is_waiting) << end.error;
}

TEST_F(NewcomersByModule, WaitingEndsWithTheSession) {
  Child waiting({.arguments = {CLEW_COMMAND, "run", calls_of("machine"), "--allow-missing"}});
  ASSERT_TRUE(waiting.read_error_line().has_value());
  waiting.signal(SIGINT);
  const Child::End end = waiting.wait_for_end();
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("no process had '" + name_ + "' mapped until the end"));
  const Report timed = run_clew({"run", calls_of("machine"), "--allow-missing", "--for", "50ms"});
  EXPECT_EQ(timed.status, 1);
  EXPECT_THAT(timed.error, HasSubstr("until the end"));
}

}  // namespace
}  // namespace clew::live
